// Package release finds out whether a newer version has been released, and what
// changed since this one. It sends one request, and only when it is called.
package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// FeedURL is the address of the releases, in the format of GitHub's REST API ("List
// releases").
const FeedURL = "https://api.github.com/repos/toolroom-mcp/toolroom/releases?per_page=100"

const (
	requestTimeout = 20 * time.Second
	maxFeed        = 8 << 20
	maxNotesBytes  = 64 << 10 // of one release
)

// Release is a published version.
type Release struct {
	Version string    `json:"version"` // v1.2.3
	Date    time.Time `json:"date,omitzero"`
	URL     string    `json:"url"` // of its page
	Notes   string    `json:"notes"`
}

// Report compares a version with the releases.
type Report struct {
	Current  string `json:"current"`
	Latest   string `json:"latest,omitempty"` // "": nothing is released
	Newer    bool   `json:"newer"`            // whether Latest is newer than Current
	Compared bool   `json:"compared"`         // false: Current is no released version
	// Releases are those after Current, newest first; without comparison only the
	// latest one.
	Releases []Release `json:"releases"`
}

// Check requests the releases from the feed, an address like Feed, and compares current,
// the version of this program, with them. Drafts are left out; so are prereleases, except
// for a program that is one itself. agent is the User-Agent of the request. It returns an
// error if the feed cannot be read.
func Check(ctx context.Context, feed, current, agent string) (Report, error) {
	releases, err := fetchReleases(ctx, feed, agent)
	if err != nil {
		return Report{}, err
	}
	base, _, _ := strings.Cut(current, "+") // +dirty
	between := module.IsPseudoVersion(base) // a build between two releases, or before the first
	r := Report{Current: current, Compared: semver.IsValid(current) && !(between && strings.HasPrefix(base, "v0.0.0-")), Releases: []Release{}}
	testing := semver.Prerelease(current) != "" && !between
	for _, one := range releases {
		if !semver.IsValid(one.Version) || semver.Prerelease(one.Version) != "" && !testing {
			continue
		}
		if r.Latest == "" || semver.Compare(one.Version, r.Latest) > 0 {
			r.Latest = one.Version
		}
		if r.Compared && semver.Compare(one.Version, current) > 0 {
			r.Releases = append(r.Releases, one)
		}
	}
	r.Newer = len(r.Releases) > 0
	if !r.Compared {
		r.Releases = append(r.Releases, slices.DeleteFunc(releases, func(one Release) bool { return one.Version != r.Latest })...)
	}
	slices.SortFunc(r.Releases, func(a, b Release) int { return semver.Compare(b.Version, a.Version) })
	return r, nil
}

// fetchReleases requests the feed, within requestTimeout, and returns its releases. It returns
// an error for another status than 200 or a malformed answer.
func fetchReleases(ctx context.Context, feed, agent string) ([]Release, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, feed, nil)
	if err != nil {
		return nil, errors.New("the address of the releases is malformed")
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("User-Agent", agent)
	client := &http.Client{CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if len(via) > 3 || to.URL.Scheme != via[0].URL.Scheme {
			return fmt.Errorf("too many redirects, or one to %s", to.URL.Scheme)
		}
		return nil
	}}
	res, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("cannot reach %s: %w", req.URL.Host, err)
	}
	defer res.Body.Close() //nolint:errcheck // only read from
	switch {
	case res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%s answers no more requests for now (%s); try again later", req.URL.Host, res.Status)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s", req.URL.Host, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxFeed+1))
	if err != nil {
		return nil, fmt.Errorf("the answer of %s broke off: %w", req.URL.Host, err)
	}
	if len(body) > maxFeed {
		return nil, fmt.Errorf("the answer of %s is larger than %d bytes", req.URL.Host, maxFeed)
	}
	return parseReleases(body, req.URL.Host)
}

// parseReleases returns the releases in the answer of the feed, without drafts, and
// with at most maxNotesBytes bytes of notes each. host is named in the error.
func parseReleases(body []byte, host string) ([]Release, error) {
	var all []struct {
		Tag       string    `json:"tag_name"`
		Page      string    `json:"html_url"`
		Body      string    `json:"body"`
		Published time.Time `json:"published_at"`
		Draft     bool      `json:"draft"`
	}
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("the answer of %s is not a list of releases", host)
	}
	var releases []Release
	for _, one := range all {
		if one.Draft {
			continue
		}
		notes := strings.TrimSpace(strings.ReplaceAll(one.Body, "\r\n", "\n"))
		if len(notes) > maxNotesBytes {
			notes = strings.ToValidUTF8(notes[:maxNotesBytes], "") + "…"
		}
		releases = append(releases, Release{Version: one.Tag, Date: one.Published, URL: one.Page, Notes: notes})
	}
	return releases, nil
}
