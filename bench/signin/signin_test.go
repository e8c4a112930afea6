//go:build oracle

package signin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestMain(m *testing.M) {
	if node := os.Getenv(chromiumNode); node != "" && len(os.Args) == 2 && strings.HasPrefix(os.Args[1], "http") {
		if err := runChromium(node, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if user := os.Getenv(browserUser); user != "" {
		page, err := browse(os.Args[1], user, "")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(page)
		return
	}
	// The keyring of the developer is not for tests.
	if err := os.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// world is a provider, an MCP server that accepts its tokens, and a host with
// its own state directory.
type world struct {
	t             *testing.T
	issuer        string
	mcp           *httptest.Server
	host          string
	config, state string

	mu    sync.Mutex
	users []string // that requests came from
}

func newWorld(t *testing.T, oauth string) *world {
	dir := t.TempDir()
	w := &world{t: t, host: mcpkittest.Build(t, "./host"), config: filepath.Join(dir, "toolroom.yaml"), state: filepath.Join(dir, "state")}
	tools := faultserver.Handler("-json")
	w.mcp = newServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
			fmt.Fprintf(out, `{"resource": %q, "authorization_servers": [%q], "scopes_supported": ["read"]}`, w.mcp.URL+"/mcp", w.issuer)
			return
		}
		if !w.admits(in) {
			out.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata=%q, scope="read"`, w.mcp.URL+"/.well-known/oauth-protected-resource/mcp"))
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		tools.ServeHTTP(out, in)
	}))
	t.Cleanup(w.mcp.Close)
	w.issuer = startProvider(t, w.mcp.URL+"/mcp", "opaque")
	require.NoError(t, os.WriteFile(w.config, fmt.Appendf(nil, "servers:\n  notes:\n    url: %s/mcp\n%s", w.mcp.URL, oauth), 0o600))
	return w
}

// appendConfig adds text to the configuration of the host.
func (w *world) appendConfig(text string) {
	f, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(w.t, err)
	_, err = f.WriteString(text)
	require.NoError(w.t, errors.Join(err, f.Close()))
}

// startProvider starts the provider for a resource, with a format of access
// tokens, and returns its issuer.
func startProvider(t *testing.T, resource, format string) (issuer string) {
	t.Helper()
	provider := exec.Command(oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "provider.mjs"), resource, format)
	provider.Stderr = os.Stderr
	out, err := provider.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, provider.Start())
	t.Cleanup(func() {
		provider.Process.Kill() //nolint:errcheck // it may have ended
		provider.Wait()         //nolint:errcheck // killed
	})
	lines := bufio.NewScanner(out)
	for issuer == "" && lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "http://") {
			issuer = line
		}
	}
	require.NotEmpty(t, issuer, "the provider did not start")
	go io.Copy(io.Discard, out) //nolint:errcheck // until it ends
	return issuer
}

// admits asks the provider whether the token of a request is valid for this
// server (RFC 7662).
func (w *world) admits(in *http.Request) bool {
	sub := subjectOf(w.issuer, w.mcp.URL+"/mcp", in)
	if sub == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users = append(w.users, sub)
	return true
}

// subjectOf returns the user of the token in a request, "" if the issuer does not know
// it as an active one for the resource (RFC 7662).
func subjectOf(issuer, resource string, in *http.Request) string {
	token, ok := strings.CutPrefix(in.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	req, err := http.NewRequest(http.MethodPost, issuer+"/token/introspection", strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		return ""
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("resource", "resource-secret")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close() //nolint:errcheck // read only
	var got struct {
		Active   bool
		Sub, Aud string
	}
	if json.NewDecoder(res.Body).Decode(&got) != nil || !got.Active || got.Aud != resource {
		return ""
	}
	return got.Sub
}

// events returns how often the provider did what.
func (w *world) events() map[string]int { return eventsOf(w.t, w.issuer) }

func eventsOf(t *testing.T, issuer string) (counts map[string]int) {
	res, err := http.Get(issuer + "/test/events")
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // read only
	require.NoError(t, json.NewDecoder(res.Body).Decode(&counts))
	return counts
}

// expire has the provider forget all tokens of a kind.
func (w *world) expire(kind string) {
	res, err := http.Post(w.issuer+"/test/expire?kind="+kind, "", nil)
	require.NoError(w.t, err)
	require.NoError(w.t, res.Body.Close())
}

// command is a command of the host, with alice at the browser.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.host, append(args, "--config", w.config, "--state", w.state)...)
	cmd.Env = append(os.Environ(), browserUser+"=alice", "BROWSER="+os.Args[0])
	return cmd
}

// run runs a command of the host and returns its output and whether it
// succeeded.
func (w *world) run(args ...string) (out string, ok bool) {
	text, err := w.command(args...).CombinedOutput()
	return string(text), err == nil
}

// succeeds runs a command that must succeed.
func (w *world) succeeds(args ...string) string {
	w.t.Helper()
	out, ok := w.run(args...)
	require.True(w.t, ok, "%v: %s", args, out)
	return out
}

func (w *world) echo() []string { return []string{"call", "notes__echo", "text=hello"} }

// stored returns what the state directory keeps of sign-ins.
func (w *world) stored() string { return storedSignIns(w.t, w.state) }

// storedSignIns returns the records of sign-ins in a state directory, one after the other.
func storedSignIns(t *testing.T, state string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "oauth", "*.json"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

func (w *world) accessToken() string {
	var record struct {
		Tokens struct {
			Access string `json:"access_token"`
		}
	}
	require.NoError(w.t, json.Unmarshal([]byte(w.stored()), &record))
	require.NotEmpty(w.t, record.Tokens.Access)
	return record.Tokens.Access
}

func TestSignInWithBrowser(t *testing.T) {
	w := newWorld(t, "")
	out, ok := w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login notes")

	require.Contains(t, w.succeeds("login", "notes"), "notes: signed in, renewed at ")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
	require.Equal(t, []string{"alice"}, slices.Compact(w.users))
	require.Equal(t, 1, w.events()["registration_create.success"])

	token := w.accessToken()
	for _, command := range []string{"servers", "config check", "doctor", "servers --json", "config check --json"} {
		out := w.succeeds(strings.Fields(command)...)
		require.NotContains(t, out, token, command)
		if strings.HasSuffix(command, "--json") {
			continue
		}
		require.Regexp(t, `signed in, renewed at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, scopes read`, out, command)
	}

	require.Contains(t, w.succeeds("login", "notes"), "signed in")
	require.Equal(t, 1, w.events()["registration_create.success"], "the registration is kept")
}

func TestSignInOfRegisteredClient(t *testing.T) {
	w := newWorld(t, "    oauth: {client_id: by-hand, client_secret: '${NOTES_SECRET}', scopes: [read, write]}\n")
	t.Setenv("NOTES_SECRET", "by-hand-secret")
	require.Contains(t, w.succeeds("login", "notes"), "scopes read write")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
	require.Zero(t, w.events()["registration_create.success"])
	require.NotContains(t, w.succeeds("config", "check"), "by-hand-secret")
}

func TestSignInOnDevice(t *testing.T) {
	w := newWorld(t, "")
	login := w.command("login", "notes", "--device")
	said, err := login.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, login.Start())
	var text strings.Builder
	shown := regexp.MustCompile(`(?s)enter the code (\S+)\s+(http://\S+)`)
	lines := bufio.NewScanner(said)
	for shown.FindString(text.String()) == "" && lines.Scan() {
		text.WriteString(lines.Text() + "\n")
	}
	found := shown.FindStringSubmatch(text.String())
	require.NotNil(t, found, text.String())
	go io.Copy(io.Discard, said) //nolint:errcheck // until the command ends
	page, err := browse(found[2], "bob", found[1])
	require.NoError(t, err)
	require.Contains(t, page, "Sign-in Success")
	require.NoError(t, login.Wait())
	require.Contains(t, w.succeeds(w.echo()...), "hello")
	require.Equal(t, []string{"bob"}, slices.Compact(w.users))
}

// callAtOnce calls the tool echo in as many processes at the same time.
func (w *world) callAtOnce(processes int) {
	w.t.Helper()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			if out, ok := w.run(w.echo()...); !ok || !strings.Contains(out, "hello") {
				w.t.Error(out)
			}
		})
	}
	all.Wait()
}

// The provider revokes all tokens of a sign-in if a refresh token is used twice.
func TestTwentyProcessesRefreshOnce(t *testing.T) {
	w := newWorld(t, "")
	w.succeeds("login", "notes")
	w.expire("AccessToken")
	w.callAtOnce(20)
	events := w.events()
	require.Equal(t, 1, events["refresh_token.consumed"])
	require.Zero(t, events["grant.revoked"])
	require.Contains(t, w.succeeds(w.echo()...), "hello")
}

func TestExpiredRefreshToken(t *testing.T) {
	w := newWorld(t, "")
	w.succeeds("login", "notes")
	w.expire("AccessToken")
	w.expire("RefreshToken")
	out, ok := w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login notes")
	require.Contains(t, w.succeeds("config", "check"), "sign-in:")
	require.Contains(t, w.succeeds("config", "check"), "notes: needs sign-in")
	w.succeeds("login", "notes")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
}

// Two sign-ins to one server, with different accounts, do not affect each other.
func TestTwoAccounts(t *testing.T) {
	w := newWorld(t, "")
	w.appendConfig("  work:\n    url: " + w.mcp.URL + "/mcp\n    oauth: {account: work}\n")
	w.succeeds("login", "notes")
	out, ok := w.run("call", "work__echo", "text=hello")
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login work")
	login := w.command("login", "work")
	login.Env = append(login.Env, browserUser+"=bob")
	text, err := login.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "account work")

	calledBy := func(tool string) []string {
		w.mu.Lock()
		w.users = nil
		w.mu.Unlock()
		require.Contains(t, w.succeeds("call", tool, "text=hello"), "hello")
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Clone(w.users)
	}
	require.Contains(t, calledBy("notes__echo"), "alice")
	require.Contains(t, calledBy("work__echo"), "bob")
	require.Contains(t, w.succeeds("logout", "work"), "work: signed out")
	require.Equal(t, []string{"alice"}, slices.Compact(calledBy("notes__echo")))
	out, ok = w.run("call", "work__echo", "text=hello")
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login work")
}

func TestSignOutRevokes(t *testing.T) {
	w := newWorld(t, "")
	w.succeeds("login", "notes")
	token := w.accessToken()
	request, err := http.NewRequest(http.MethodPost, w.mcp.URL+"/mcp", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	require.True(t, w.admits(request))

	require.Contains(t, w.succeeds("logout", "notes"), "notes: signed out")
	require.False(t, w.admits(request), "the token of before is valid")
	require.NotContains(t, w.stored(), token)
	out, ok := w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login notes")
}

// A running host uses a sign-in of another process at once, and a login that is
// killed leaves nothing behind.
func TestRestartDuringSignIn(t *testing.T) {
	w := newWorld(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := exec.CommandContext(ctx, w.host, "login", "notes", "--no-browser", "--config", w.config, "--state", w.state)
	said, err := first.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, first.Start())
	lines := bufio.NewScanner(said)
	var link string
	for link == "" && lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "http://") {
			link = text
		}
	}
	require.NotEmpty(t, link)
	cancel()
	first.Wait() //nolint:errcheck // killed
	_, err = browse(link, "alice", "")
	require.Error(t, err, "nobody listens at the redirect address")
	require.NotContains(t, w.stored(), "access_token")

	begin := time.Now()
	w.succeeds("login", "notes")
	require.Contains(t, w.succeeds(w.echo()...), "hello")
	t.Logf("sign-in after a killed one: %v", time.Since(begin).Round(time.Millisecond))
}
