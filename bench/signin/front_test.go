//go:build oracle

package signin

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// front is `mcp-host serve` with the sign-in of users at the provider. alice
// has all tools, everybody else one.
type front struct {
	t           *testing.T
	url, issuer string
	host, dir   string
	audit       string
	limit, rule string       // additional lines of the policy, and of its rules
	said        lockedText   // standard error of the host
	stop        func()       // ends the host
	passedOn    atomic.Int32 // requests with credentials that reached the server behind
}

func newFront(t *testing.T, format string) *front {
	f := prepareFront(t)
	tools := faultserver.Handler("-json")
	behind := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.Header.Get("Authorization") != "" {
			f.passedOn.Add(1)
		}
		tools.ServeHTTP(out, in)
	}))
	t.Cleanup(behind.Close)
	f.issuer = startProvider(t, f.url+"/mcp", format)
	f.start(fmt.Sprintf("notes: {url: %s/mcp}", behind.URL))
	return f
}

// prepareFront chooses the address of the host.
func prepareFront(t *testing.T) *front {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	f := &front{t: t, url: "http://" + address, host: mcpkittest.Build(t, "./host"), dir: t.TempDir()}
	f.audit = filepath.Join(f.dir, "audit")
	return f
}

// start starts the host with a server.
func (f *front) start(server string) {
	f.configure(server)
	f.serve()
}

// configure writes the configuration of the host with a server.
func (f *front) configure(server string) {
	t := f.t
	config := filepath.Join(f.dir, "front.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `servers:
  %s
profiles:
  few: {allow: [notes__echo]}
auth:
  issuer: %s
  url: %s
  scopes: [read]
  profiles: {writers: "*", readers: few}
  client_id: resource
  client_secret: resource-secret
audit: {dir: %q}
policy:
%s  rules:
    - {caller: http/carol, do: deny, why: carol is on leave}
%s`, server, f.issuer, f.url, f.audit, f.limit, f.rule), 0o600))
}

// serve starts the host as it is configured.
func (f *front) serve() {
	t := f.t
	serve := exec.Command(f.host, append([]string{"serve", "--listen", strings.TrimPrefix(f.url, "http://")}, f.files()...)...)
	serve.Stderr = io.MultiWriter(os.Stderr, &f.said)
	require.NoError(t, serve.Start())
	f.stop = sync.OnceFunc(func() {
		serve.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		serve.Wait()                       //nolint:errcheck // interrupted
	})
	t.Cleanup(f.stop)
	require.Eventually(t, func() bool {
		res, err := http.Get(f.url + "/healthz")
		return err == nil && res.Body.Close() == nil && res.StatusCode == 200
	}, time.Minute, 20*time.Millisecond)
}

// browserOf returns the environment of a program that a user sits at.
func (f *front) browserOf(user string) []string {
	return append(os.Environ(), browserUser+"="+user, "BROWSER="+os.Args[0])
}

// files returns the flags for the configuration and the state directory of the host.
func (f *front) files() []string {
	return []string{"--config", filepath.Join(f.dir, "front.yaml"), "--state", filepath.Join(f.dir, "front")}
}

// run runs a command of the host of a user, who has the front as a server.
func (f *front) run(user string, args ...string) (out string, ok bool) {
	config := filepath.Join(f.dir, user+".yaml")
	require.NoError(f.t, os.WriteFile(config, fmt.Appendf(nil, "servers:\n  team:\n    url: %s/mcp\n", f.url), 0o600))
	cmd := exec.Command(f.host, append(args, "--config", config, "--state", filepath.Join(f.dir, user))...)
	cmd.Env = f.browserOf(user)
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

func (f *front) succeeds(user string, args ...string) string {
	f.t.Helper()
	out, ok := f.run(user, args...)
	require.True(f.t, ok, "%v: %s", args, out)
	return out
}

// audited returns the audit log.
func (f *front) audited() string {
	files, err := filepath.Glob(filepath.Join(f.audit, "*"))
	require.NoError(f.t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f.t, err)
		all.Write(text)
	}
	return all.String()
}

// callers returns those in the audit log.
func (f *front) callers() (callers []string) {
	for line := range strings.Lines(f.audited()) {
		var event struct{ Caller string }
		if json.Unmarshal([]byte(line), &event) == nil && event.Caller != "" {
			callers = append(callers, event.Caller)
		}
	}
	return callers
}

// TestUsersOfServe: users sign in to the host itself, with JSON Web Tokens and
// with opaque tokens, and have their own profiles, policy and names in the log.
func TestUsersOfServe(t *testing.T) {
	for _, format := range []string{"jwt", "opaque"} {
		t.Run(format, func(t *testing.T) {
			f := newFront(t, format)
			out, ok := f.run("alice", "call", "team__notes__echo", "text=hello")
			require.False(t, ok)
			require.Contains(t, out, "mcp-host login team")
			for _, user := range []string{"alice", "bob", "carol"} {
				require.Contains(t, f.succeeds(user, "login", "team"), "signed in")
			}
			require.Contains(t, f.succeeds("alice", "call", "team__notes__echo", "text=hello"), "hello")
			require.Contains(t, f.succeeds("bob", "call", "team__notes__echo", "text=hello"), "hello")
			require.Greater(t, strings.Count(f.succeeds("alice", "tools"), "team__notes__"), 3)
			require.Equal(t, 1, strings.Count(f.succeeds("bob", "tools"), "team__notes__"))
			out, ok = f.run("carol", "call", "team__notes__echo", "text=hello")
			require.False(t, ok)
			require.Contains(t, out, "carol is on leave")
			require.Eventually(t, func() bool { return len(f.callers()) >= 3 }, 10*time.Second, 20*time.Millisecond)
			require.Subset(t, []string{"http/alice", "http/bob", "http/carol"}, f.callers())
			require.Subset(t, f.callers(), []string{"http/alice", "http/bob"})
			require.Zero(t, f.passedOn.Load(), "a user's token is passed to no server")

			res, err := http.Get(f.url + "/v1/tools")
			require.NoError(t, err)
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusUnauthorized, res.StatusCode, "%s", text)
		})
	}
}

// TestSDKsSignInToServe: the OAuth clients of the TypeScript SDKs sign in.
func TestSDKsSignInToServe(t *testing.T) {
	for sdk := 1; sdk <= 2; sdk++ {
		t.Run(fmt.Sprintf("SDK %d", sdk), func(t *testing.T) {
			f := newFront(t, "jwt")
			order, err := json.Marshal(map[string]any{"sdk": sdk, "url": f.url + "/mcp", "browser": os.Args[0], "tool": "notes__echo"})
			require.NoError(t, err)
			cmd := exec.Command(oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "oauth.mjs"), string(order))
			cmd.Env = append(os.Environ(), browserUser+"=bob")
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			require.NoError(t, err)
			var got struct {
				Resource, Scope string
				Tools           []string
				Result          struct{ Content []struct{ Text string } }
			}
			require.NoError(t, json.Unmarshal(out, &got), "%s", out)
			require.Equal(t, f.url+"/mcp", got.Resource)
			require.Equal(t, "read", strings.Fields(got.Scope)[0])
			require.Equal(t, []string{"notes__echo"}, got.Tools)
			require.Contains(t, got.Result.Content[0].Text, "hello")
		})
	}
}
