package release

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const listed = `[
	{"tag_name": "v1.4.0-rc.1", "html_url": "https://example.com/4", "body": "candidate", "prerelease": true},
	{"tag_name": "v1.10.0", "html_url": "https://example.com/10", "body": "ten\r\nlines", "published_at": "2026-11-01T00:00:00Z"},
	{"tag_name": "v1.9.0", "html_url": "https://example.com/9", "body": "nine"},
	{"tag_name": "v1.11.0", "body": "not yet", "draft": true},
	{"tag_name": "nightly", "body": "no version"},
	{"tag_name": "v1.2.0", "body": "two"}
]`

func serve(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestCheck(t *testing.T) {
	feed := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.UserAgent() != "agent" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, listed)
	})
	for _, c := range []struct {
		current, latest string
		newer, compared bool
		releases        []string
	}{
		{"v1.2.0", "v1.10.0", true, true, []string{"v1.10.0", "v1.9.0"}},
		{"v1.9.0", "v1.10.0", true, true, []string{"v1.10.0"}},
		{"v1.10.0", "v1.10.0", false, true, nil},
		{"v2.0.0", "v1.10.0", false, true, nil},
		{"v1.3.0-rc.1", "v1.10.0", true, true, []string{"v1.10.0", "v1.9.0", "v1.4.0-rc.1"}},
		{"v1.9.1-0.20261101000000-0123456789ab", "v1.10.0", true, true, []string{"v1.10.0"}},
		{"v0.0.0-20261101000000-0123456789ab+dirty", "v1.10.0", false, false, []string{"v1.10.0"}},
		{"devel", "v1.10.0", false, false, []string{"v1.10.0"}},
	} {
		t.Run(c.current, func(t *testing.T) {
			r, err := Check(t.Context(), feed, c.current, "agent")
			require.NoError(t, err)
			var versions []string
			for _, one := range r.Releases {
				versions = append(versions, one.Version)
			}
			require.Equal(t, c.releases, versions)
			require.Equal(t, c.latest, r.Latest)
			require.Equal(t, c.newer, r.Newer)
			require.Equal(t, c.compared, r.Compared)
			if c.current == "devel" {
				require.Equal(t, "ten\nlines", r.Releases[0].Notes)
			}
		})
	}
}

func TestNothingReleased(t *testing.T) {
	r, err := Check(t.Context(), serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") }), "v1.0.0", "")
	require.NoError(t, err)
	require.Equal(t, Report{Current: "v1.0.0", Compared: true, Releases: []Release{}}, r)
}

func TestFeedsThatFail(t *testing.T) {
	for want, handler := range map[string]http.HandlerFunc{
		"answers no more requests":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"answered 500":                 func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"is not a list of releases":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"is larger than 8388608 bytes": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", maxFeed+1)) },
		"too many redirects":           func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/again", http.StatusFound) },
		"broke off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "[")
		},
	} {
		_, err := Check(t.Context(), serve(t, handler), "v1.0.0", "")
		require.ErrorContains(t, err, want)
	}
	_, err := Check(t.Context(), "http://127.0.0.1:1/", "v1.0.0", "")
	require.ErrorContains(t, err, "cannot reach 127.0.0.1:1: ")
}

func TestLongNotes(t *testing.T) {
	releases, err := parseReleases([]byte(`[{"tag_name": "v1.0.0", "body": "`+strings.Repeat("ü", maxNotesBytes)+`"}]`), "")
	require.NoError(t, err)
	require.LessOrEqual(t, len(releases[0].Notes), maxNotesBytes+len("…"))
}
