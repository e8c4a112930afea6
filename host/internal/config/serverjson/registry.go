// Package serverjson reads server.json, the description of a server in the format of
// the MCP registry, and derives how the host runs or reaches that server.
//
// An entry never chooses the program that runs: npm packages run with npx, PyPI
// packages with uvx, images with docker, each with the arguments that Plan returns.
// Source: the registry's schema 2025-12-11 and its API v0.1.
package serverjson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// RegistryURL is the address of the official registry.
const RegistryURL = "https://registry.modelcontextprotocol.io"

const (
	requestTimeout = 20 * time.Second
	maxEntry       = 1 << 20
)

// An Entry is the content of a server.json.
type Entry struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Version     string    `json:"version"`
	Packages    []Package `json:"packages"`
	Remotes     []Remote  `json:"remotes"`
}

// A Package is a way to run the server on this machine.
type Package struct {
	Type        string     `json:"registryType"` // npm, pypi, oci, nuget, mcpb
	Identifier  string     `json:"identifier"`
	Version     string     `json:"version"`
	Runtime     []Argument `json:"runtimeArguments"`
	Arguments   []Argument `json:"packageArguments"`
	Environment []Input    `json:"environmentVariables"`
	Transport   Remote     `json:"transport"`
}

// A Remote is an address at which the server is reached.
type Remote struct {
	Type      string           `json:"type"` // stdio, streamable-http, sse
	URL       string           `json:"url"`
	Headers   []Input          `json:"headers"`
	Variables map[string]Input `json:"variables"`
}

// An Input is a value that is fixed or given by the user.
type Input struct {
	Name      string           `json:"name"`
	Value     string           `json:"value"`
	Default   string           `json:"default"`
	Required  bool             `json:"isRequired"`
	Secret    bool             `json:"isSecret"`
	Choices   []string         `json:"choices"`
	Variables map[string]Input `json:"variables"`
}

// An Argument is an argument of a command line.
type Argument struct {
	Input
	Type     string `json:"type"` // positional or named
	Hint     string `json:"valueHint"`
	Repeated bool   `json:"isRepeated"`
}

// Parse decodes a server.json, or the answer of a registry that contains one. It fails
// without a name, and without packages and remotes.
func Parse(text []byte) (Entry, error) {
	var answer struct {
		Server *Entry `json:"server"`
	}
	if err := json.Unmarshal(text, &answer); err == nil && answer.Server != nil {
		return *answer.Server, answer.Server.check()
	}
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return Entry{}, fmt.Errorf("this is not a server.json: %w", err)
	}
	return e, e.check()
}

// check returns an error if the entry has no name, or nothing to run.
func (e Entry) check() error {
	switch {
	case e.Name == "":
		return errors.New("this is not a server.json: it has no name")
	case len(e.Packages)+len(e.Remotes) == 0:
		return fmt.Errorf("server.json of %s has neither packages nor remotes", e.Name)
	}
	return nil
}

// Lookup requests the latest version of a server from the registry at the address base, and
// returns the errors of Fetch. agent is the User-Agent of the request.
func Lookup(ctx context.Context, base, name, agent string) (Entry, error) {
	return Fetch(ctx, strings.TrimSuffix(base, "/")+"/v0.1/servers/"+url.PathEscape(name)+"/versions/latest", agent)
}

// Fetch requests a server.json from an address, in one request, and decodes it. agent
// is the User-Agent. It fails for more than maxEntry bytes.
func Fetch(ctx context.Context, address, agent string) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || req.URL.Host == "" {
		return Entry{}, errors.New("the address is malformed")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", agent)
	client := &http.Client{CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if len(via) > 3 || to.URL.Scheme != via[0].URL.Scheme {
			return errors.New("too many redirects, or one to another scheme")
		}
		return nil
	}}
	res, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return Entry{}, fmt.Errorf("cannot reach %s: %w", req.URL.Host, err)
	}
	defer res.Body.Close() //nolint:errcheck // only read from
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return Entry{}, fmt.Errorf("%s has no such server", req.URL.Host)
	default:
		return Entry{}, fmt.Errorf("%s answered %s", req.URL.Host, res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxEntry+1))
	switch {
	case err != nil:
		return Entry{}, fmt.Errorf("the answer of %s broke off: %w", req.URL.Host, err)
	case len(text) > maxEntry:
		return Entry{}, fmt.Errorf("the answer of %s is larger than %d bytes", req.URL.Host, maxEntry)
	}
	return Parse(text)
}
