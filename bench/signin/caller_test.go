//go:build oracle

package signin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
)

// lockedText is a buffer that several goroutines use.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// team is a front whose server notes requires a token of each user, and notes who said
// what.
type team struct {
	*front
	behind   *httptest.Server
	tools    *replaceable // what notes does with accepted requests
	provider string       // authorization server of notes

	mu     sync.Mutex
	said   []string // "USER: TEXT" of each call
	tokens []string // that notes received
}

// newTeam starts a team. With own, notes has its own
// authorization server; otherwise it uses the server of the host's users.
func newTeam(t *testing.T, format string, own bool, settings string) *team {
	return newTeamWithPolicy(t, format, own, settings, "", "")
}

// newTeamWithPolicy is newTeam with additional lines of the policy, and of its rules.
func newTeamWithPolicy(t *testing.T, format string, own bool, settings, limit, rule string) *team {
	w := &team{front: prepareFront(t)}
	w.limit, w.rule = limit, rule
	w.tools = &replaceable{}
	w.tools.set(faultserver.Handler("-json"))
	w.behind = newServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
			fmt.Fprintf(out, `{"resource": %q, "authorization_servers": [%q], "scopes_supported": ["read"]}`, w.behind.URL+"/mcp", w.provider)
			return
		}
		user := subjectOf(w.provider, w.behind.URL+"/mcp", in)
		tool, text, err := readToolCall(in)
		if err != nil {
			return
		}
		w.mu.Lock()
		if token := in.Header.Get("Authorization"); token != "" {
			w.tokens = append(w.tokens, strings.TrimPrefix(token, "Bearer "))
		}
		if tool != "" && user != "" {
			w.said = append(w.said, user+": "+text)
		}
		w.mu.Unlock()
		if user == "" {
			out.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata=%q, scope="read"`, w.behind.URL+"/.well-known/oauth-protected-resource/mcp"))
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.tools.ServeHTTP(out, in)
	}))
	t.Cleanup(w.behind.Close)
	w.issuer = startProvider(t, w.url+"/mcp", format)
	w.provider = w.issuer
	if own {
		w.provider = startProvider(t, w.behind.URL+"/mcp", "opaque")
	}
	w.start(fmt.Sprintf("notes: {url: %s/mcp, %s}", w.behind.URL, settings))
	return w
}

func (w *team) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.said...)
}

// stored returns what the host keeps of sign-ins to servers.
func (w *team) stored() string { return storedSignIns(w.t, filepath.Join(w.dir, "front")) }

// token returns an access token of a user for the host.
func (w *team) token(user string) string {
	w.t.Helper()
	w.succeeds(user, "login", "team")
	files, err := filepath.Glob(filepath.Join(w.dir, user, "oauth", "*.json"))
	require.NoError(w.t, err)
	require.Len(w.t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(w.t, err)
	var record struct {
		Tokens struct {
			Access string `json:"access_token"`
		}
	}
	require.NoError(w.t, json.Unmarshal(text, &record))
	return record.Tokens.Access
}

// visitor is the input of users.mjs, and visit its output.
type visitor struct {
	SDK     int      `json:"sdk"`
	Era     string   `json:"era"`
	URL     string   `json:"url"`
	Token   string   `json:"token"`
	Text    string   `json:"text"`
	Calls   []string `json:"calls"`
	Browser string   `json:"browser"`
	Links   bool     `json:"links"`
	Stay    bool     `json:"stay"`
}

type visit struct {
	seen
	Session string
}

// visit runs a client. user sits at its browser.
func (w *team) visit(user string, v visitor) (got visit) {
	w.t.Helper()
	v.URL, v.Browser = w.url+"/mcp", os.Args[0]
	order, err := json.Marshal(v)
	require.NoError(w.t, err)
	cmd := exec.Command(oracle.Path(w.t, "node"), filepath.Join(oracle.Dir(), "users.mjs"), string(order))
	cmd.Env = append(os.Environ(), browserUser+"="+user)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(out, &got), "%s", out)
	return got
}

// visitors are the clients of both SDKs and eras.
var visitors = map[string]visitor{
	"SDK 1":             {SDK: 1, Era: "legacy"},
	"SDK 2, 2025-11-25": {SDK: 2, Era: "legacy"},
	"SDK 2, 2026-07-28": {SDK: 2, Era: "modern"},
}

func (v visit) requireText(t *testing.T, i int, want string) {
	t.Helper()
	require.Empty(t, v.Results[i].Thrown)
	require.False(t, v.Results[i].IsError, v.Results[i])
	require.Contains(t, v.Results[i].Content[0].Text, want)
}

// Each user signs in to the server by a link of the host, and uses the server as
// nobody else.
func TestUsersHaveTheirOwnCredentials(t *testing.T) {
	for name, v := range visitors {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, "jwt", true, "credentials: caller")
			alice, bob := w.token("alice"), w.token("bob")
			v.Token, v.Text, v.Links, v.Calls = alice, "from alice", true, []string{"notes__toolroom_sign_in", "notes__echo"}
			got := w.visit("alice", v)
			require.Contains(t, got.Before, "notes__toolroom_sign_in")
			require.Len(t, got.Links, 1)
			require.True(t, strings.HasPrefix(got.Links[0].URL, w.url+"/sign-in/"), got.Links[0].URL)
			require.Contains(t, got.Links[0].Message, "Server notes needs a sign-in")
			got.requireText(t, 0, "Signed in to server notes")
			got.requireText(t, 1, "from alice")
			require.Equal(t, []string{"alice: from alice"}, w.calls())

			// bob does not have alice's sign-in: a call of his waits for his own.
			v.Token, v.Text, v.Calls = bob, "from bob", []string{"notes__echo", "notes__echo"}
			got = w.visit("bob", v)
			require.Contains(t, got.Before, "notes__echo")
			require.Len(t, got.Links, 1)
			got.requireText(t, 0, "from bob")
			got.requireText(t, 1, "from bob")
			require.Equal(t, []string{"alice: from alice", "bob: from bob", "bob: from bob"}, w.calls())
			for _, token := range w.tokens {
				require.NotContains(t, []string{alice, bob}, token, "a user's token is passed to no server")
			}
			require.Eventually(t, func() bool { return len(w.callers()) >= 4 }, time.Minute, 20*time.Millisecond)
			for _, secret := range append(w.tokens, alice, bob) {
				require.NotContains(t, w.front.said.String(), secret)
				require.NotContains(t, w.audited(), secret)
			}
		})
	}
}

// Clients that cannot open links get the link as text. It works for its user only.
func TestLinkAsText(t *testing.T) {
	w := newTeam(t, "opaque", true, "credentials: caller")
	v := visitors["SDK 1"]
	v.Token, v.Text, v.Calls = w.token("alice"), "from alice", []string{"notes__toolroom_sign_in"}
	got := w.visit("alice", v)
	require.True(t, got.Results[0].IsError)
	text := got.Results[0].Content[0].Text
	require.Contains(t, text, "server notes needs the sign-in of alice: ask the user to open "+w.url+"/sign-in/")
	link := "http" + strings.Fields(text[strings.Index(text, "open http")+len("open http"):])[0]

	_, err := browse(link, "bob", "")
	require.ErrorContains(t, err, "This link is for another user")
	require.NotContains(t, w.stored(), "access_token")

	page, err := browse(link, "alice", "")
	require.NoError(t, err)
	require.Contains(t, page, "Signed in to server notes")
	require.Contains(t, w.stored(), "access_token")
	_, err = browse(link, "alice", "")
	require.ErrorContains(t, err, "This link is not valid any more")

	v.Calls = []string{"notes__echo"}
	got = w.visit("alice", v)
	require.Contains(t, got.Before, "notes__echo")
	got.requireText(t, 0, "from alice")
	require.Equal(t, []string{"alice: from alice"}, w.calls())

	logout := exec.Command(w.host, "logout", "notes", "--users", "--config", filepath.Join(w.dir, "front.yaml"), "--state", filepath.Join(w.dir, "front"))
	out, err := logout.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "notes: users signed out: 1\n", string(out))
	got = w.visit("alice", v)
	require.True(t, got.Results[0].IsError)
	require.Contains(t, got.Results[0].Content[0].Text, "needs the sign-in of alice")
	require.Len(t, w.calls(), 1)
}

// The host exchanges the token of each user at the issuer. Nobody signs in again.
func TestTokensOfUsersAreExchanged(t *testing.T) {
	for _, format := range []string{"jwt", "opaque"} {
		t.Run(format, func(t *testing.T) {
			w := newTeam(t, format, false, "token_exchange: true")
			alice, bob := w.token("alice"), w.token("bob")
			v := visitors["SDK 2, 2026-07-28"]
			v.Token, v.Text, v.Calls = alice, "from alice", []string{"notes__echo", "notes__echo"}
			got := w.visit("alice", v)
			require.Contains(t, got.Before, "notes__echo")
			got.requireText(t, 1, "from alice")
			v = visitors["SDK 1"]
			v.Token, v.Text, v.Calls = bob, "from bob", []string{"notes__echo"}
			got = w.visit("bob", v)
			got.requireText(t, 0, "from bob")
			require.Equal(t, []string{"alice: from alice", "alice: from alice", "bob: from bob"}, w.calls())
			require.NotEmpty(t, w.tokens)
			for _, token := range w.tokens {
				require.NotContains(t, []string{alice, bob}, token, "a user's token is passed to no server")
			}
			require.Equal(t, 2, eventsOf(t, w.issuer)["token_exchange"], "a token is used until it expires")

			v.Token = w.token("mallory")
			got = w.visit("mallory", v)
			require.True(t, got.Results[0].IsError)
			require.Contains(t, got.Results[0].Content[0].Text, "access_denied")
			require.Len(t, w.calls(), 3)
		})
	}
}

// A session cannot be used with another user's token, whatever its server's credentials.
func TestStolenSession(t *testing.T) {
	w := newTeam(t, "jwt", false, "token_exchange: true")
	v := visitors["SDK 1"]
	v.Token, v.Text, v.Calls, v.Stay = w.token("alice"), "from alice", []string{"notes__echo"}, true
	session := w.visit("alice", v).Session
	require.NotEmpty(t, session)
	call := func(token string) (int, string) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes__echo","arguments":{"text":"stolen"}}}`
		req, err := http.NewRequest(http.MethodPost, w.url+"/mcp", strings.NewReader(body))
		require.NoError(t, err)
		for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode, string(text)
	}
	status, text := call(w.token("bob"))
	require.Equal(t, http.StatusNotFound, status, text)
	require.Equal(t, []string{"alice: from alice"}, w.calls())
	status, text = call(v.Token)
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, []string{"alice: from alice", "alice: stolen"}, w.calls())
}
