package oauth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
)

// TestMain runs this program as a process that asks for a token, see
// TestRefreshByTwentyProcesses.
func TestMain(m *testing.M) {
	if address := os.Getenv("OAUTH_TEST_URL"); address != "" {
		token, err := NewSource(Config{Server: "notes", URL: address, Storage: Storage{State: os.Getenv("OAUTH_TEST_STATE")}}).Token(context.Background())
		fmt.Print(token, err)
		return
	}
	os.Exit(leakcheck.Tests{Tests: m}.Run())
}

func TestSignIn(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	a, err := p.login(c)
	require.NoError(t, err)
	require.True(t, a.SignedIn)
	require.True(t, a.Refreshes)
	require.Equal(t, p.auth.URL, a.Issuer)
	require.Equal(t, []string{"read"}, a.Scopes)
	require.Equal(t, c.URL, p.forms[0].Get("resource"))
	require.Equal(t, "registered", p.forms[0].Get("client_id"))
	token, err := NewSource(c).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	info, err := os.Stat(c.File())
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	other := c
	other.Account = "work"
	token, err = NewSource(other).Token(t.Context())
	require.NoError(t, err)
	require.Empty(t, token, "of another account")
}

func TestSignInByPastedAddress(t *testing.T) {
	p := newProvider(t)
	pasted := make(chan string, 1)
	_, err := Login(t.Context(), p.config(), Prompt{
		Open: func(address string) error {
			client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			res, err := client.Get(address)
			if err == nil {
				pasted <- res.Header.Get("Location") + "\n"
				err = res.Body.Close()
			}
			return err
		},
		Paste: func(context.Context) (string, error) { return <-pasted, nil },
	})
	require.NoError(t, err)
}

// Nothing is received on the port of the redirect address, so another program may have it, such
// as ssh, which forwards it.
func TestPastedAddressNeedsNoPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close() //nolint:errcheck // nothing was accepted
	p := newProvider(t)
	c := p.config()
	c.RedirectURI = "http://" + listener.Addr().String() + "/callback"
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Login(ctx, c, Prompt{
		Open: func(address string) error {
			u, err := url.Parse(address)
			require.NoError(t, err)
			require.Equal(t, c.RedirectURI, u.Query().Get("redirect_uri"))
			return nil
		},
		Paste: func(ctx context.Context) (string, error) { cancel(); return "", ctx.Err() },
	})
	require.EqualError(t, err, "the sign-in was not completed in time; run the command again")
}

func TestSignInOnAnotherDevice(t *testing.T) {
	p := newProvider(t)
	pending := 2
	p.token = func(w http.ResponseWriter, req *http.Request) bool {
		require.Equal(t, "d", req.FormValue("device_code"))
		if pending--; pending < 0 {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]any{"error": "authorization_pending"})
		return true
	}
	shown := ""
	a, err := Login(t.Context(), p.config(), Prompt{Device: func(address, code string) error { shown = address + " " + code; return nil }})
	require.NoError(t, err)
	require.True(t, a.SignedIn)
	require.Equal(t, p.auth.URL+"/enter ABCD", shown)
}

// A code that comes with a wrong answer is not sent to the token endpoint.
func TestAnswersThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(url.Values)
		metadata func(map[string]any)
		want     string
	}{
		"wrong issuer":   {change: func(v url.Values) { v.Set("iss", "https://attacker.example") }, want: "another authorization server"},
		"missing issuer": {change: func(v url.Values) { v.Del("iss") }, want: "lacks the issuer"},
		"unexpected wrong issuer": {
			change:   func(v url.Values) { v.Set("iss", "https://attacker.example") },
			metadata: func(m map[string]any) { delete(m, "authorization_response_iss_parameter_supported") }, want: "another authorization server",
		},
		"two codes": {change: func(v url.Values) { v.Add("code", "injected") }, want: "code twice"},
		"no code":   {change: func(v url.Values) { v.Del("code") }, want: "no code"},
		"an error":  {change: func(v url.Values) { v.Set("error", "access_denied"); v.Del("code") }, want: "access_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.redirect, p.metadata = c.change, c.metadata
			cfg := p.config()
			_, err := p.login(cfg)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, p.count())
			_, ok, err := cfg.Status()
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}

// Some authorization servers send the issuer without announcing it. It is compared (MCP
// 2026-07-28, authorization response validation).
func TestIssuerThatIsNotAnnounced(t *testing.T) {
	p := newProvider(t)
	p.metadata = func(m map[string]any) { delete(m, "authorization_response_iss_parameter_supported") }
	status, err := p.login(p.config())
	require.NoError(t, err)
	require.True(t, status.SignedIn)
}

// A page that the user visits can send the browser to the redirect port. That
// neither signs in nor ends the sign-in.
func TestAnswersOfOtherSignInsAreIgnored(t *testing.T) {
	p := newProvider(t)
	_, err := Login(t.Context(), p.config(), Prompt{Open: func(address string) error {
		u, err := url.Parse(address)
		require.NoError(t, err)
		for _, query := range []string{"code=injected", "code=injected&state=", "code=injected&state=guessed", "error=access_denied", "state=a&state=b", "iss=a&iss=b", "code=1&code=2", "error=a&error=b"} {
			res, err := http.Get(u.Query().Get("redirect_uri") + "?" + query)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadRequest, res.StatusCode)
			require.NoError(t, res.Body.Close())
		}
		return p.browse(address)
	}})
	require.NoError(t, err)
	require.Equal(t, "c", p.forms[0].Get("code"))
}

func TestMetadataThatIsRefused(t *testing.T) {
	set := func(name string, value any) func(map[string]any) {
		return func(m map[string]any) { m[name] = value }
	}
	for name, c := range map[string]struct {
		metadata, resource func(map[string]any)
		want               string
	}{
		"no PKCE":                         {metadata: set("code_challenge_methods_supported", nil), want: "set oauth.assume_pkce for server notes"},
		"only plain PKCE":                 {metadata: set("code_challenge_methods_supported", []string{"plain"}), want: "does not support PKCE"},
		"another issuer":                  {metadata: set("issuer", "https://attacker.example"), want: "names another issuer"},
		"authorization endpoint: script":  {metadata: set("authorization_endpoint", "javascript:alert(1)"), want: "authorization endpoint"},
		"authorization endpoint: file":    {metadata: set("authorization_endpoint", "file:///bin/sh"), want: "authorization endpoint"},
		"authorization endpoint: program": {metadata: set("authorization_endpoint", "calculator://x"), want: "only https is allowed"},
		"token endpoint: not encrypted":   {metadata: set("token_endpoint", "http://auth.example.com/token"), want: "not encrypted"},
		"token endpoint: with a user":     {metadata: set("token_endpoint", "https://a:b@auth.example.com/"), want: "not an address"},
		"another resource":                {resource: set("resource", "https://other.example.com/mcp"), want: "is for the resource"},
		"a resource below":                {resource: func(m map[string]any) { m["resource"] = m["resource"].(string) + "/below" }, want: "is for the resource"},
		"no authorization server":         {resource: set("authorization_servers", []string{}), want: "names no authorization server"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.metadata, p.resource = c.metadata, c.resource
			_, err := Login(t.Context(), p.config(), Prompt{Open: func(string) error { t.Error("the browser is opened"); return nil }})
			require.ErrorContains(t, err, c.want)
			require.Zero(t, p.count())
		})
	}
}

// A public server's metadata must not lead the host to this machine or a
// private network.
func TestPublicServersLeadToNoPrivateAddress(t *testing.T) {
	c := Config{Server: "notes", URL: "https://mcp.example.com/mcp"}
	for _, address := range []string{
		"http://127.0.0.1/", "https://127.0.0.1/", "https://localhost/", "https://10.1.2.3/", "https://192.168.1.1/", "https://[::1]/",
		"https://[fd00::1]/", "http://169.254.169.254/latest/meta-data", "https://[::ffff:127.0.0.1]/", "https://router.local/",
	} {
		_, err := c.checkAddress("token endpoint", address)
		require.ErrorContains(t, err, "private address", address)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	err := c.getJSON(t.Context(), c.newHTTP(), server.URL, nil)
	require.ErrorContains(t, err, "refused to connect", "a name may lead to it, too")

	c.AllowPrivate = true
	_, err = c.checkAddress("token endpoint", "https://10.1.2.3/")
	require.NoError(t, err)
}

func TestAnswersAreBounded(t *testing.T) {
	var endless *httptest.Server
	requests := 0
	endless = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		requests++
		switch req.URL.Path {
		case "/large":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"issuer":"%s"}`, strings.Repeat("x", 10<<20)) //nolint:errcheck // the client hangs up
		case "/loop":
			http.Redirect(w, req, endless.URL+"/loop", http.StatusFound)
		case "/away":
			http.Redirect(w, req, "file:///etc/passwd", http.StatusFound)
		}
	}))
	defer endless.Close()
	c := Config{Server: "notes", URL: endless.URL}
	for path, want := range map[string]string{"/large": "larger than", "/loop": "redirects in a row", "/away": "is not an address", "/html": "instead of JSON"} {
		err := c.getJSON(t.Context(), c.newHTTP(), endless.URL+path, &map[string]any{})
		require.ErrorContains(t, err, want, path)
	}
	require.Less(t, requests, 10)
}

// Credentials go to the token endpoint alone: a redirect is not followed, and
// no error quotes the answer.
func TestCredentialsStayAtTheTokenEndpoint(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host is asked") }))
	defer other.Close()
	p.token = func(w http.ResponseWriter, req *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", other.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
		fmt.Fprintf(w, `{"token":%q}`, req.FormValue("refresh_token")) //nolint:errcheck // a part is enough
		return true
	}
	s := NewSource(c)
	_, err := s.Token(t.Context())
	require.NoError(t, err)
	_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.ErrorContains(t, err, "status 307")
	for _, token := range s.Secrets() {
		require.NotContains(t, err.Error(), token)
	}
}

func TestBrowserURL(t *testing.T) {
	for _, address := range []string{
		"javascript:alert(1)", "file:///bin/sh", "data:text/html,x", "https:opaque", "//host/", "", "https://", "http://user@host/", "https://a b/",
		"https://$(id)/", "https://`id`/", "https://a\nb/", "-psn", "ms-msdt:/id",
	} {
		_, err := BrowserURL(address)
		require.Error(t, err, address)
	}
	for address, want := range map[string]string{
		"https://host/a&/bin/x&?x=1&y=2": "https://host/a%26/bin/x%26?x=1&y=2",
		"https://host/a?x=1&y=2#b&c":     "https://host/a?x=1&y=2#b%26c",
		"https://host/#?a&b":             "https://host/#?a%26b",
	} {
		got, err := BrowserURL(address)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := BrowserURL("https://host/a?x=$(id)&y=`id`;z|w'\"<>\\^{}")
	require.NoError(t, err)
	require.False(t, strings.ContainsAny(got, "$()`;|'\"<>\\^{} "), got)
	require.True(t, strings.HasPrefix(got, "https://host/a?x="), got)
}

// A refresh token that changes with each use is used once, whatever the number
// of processes.
func TestRefreshByTwentyProcesses(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	require.NoError(t, c.updateRecord(t.Context(), func(r *record) (bool, error) {
		r.Tokens.Expires = time.Now().Add(-time.Second)
		return true, nil
	}))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), "OAUTH_TEST_URL="+c.URL, "OAUTH_TEST_STATE="+c.State)
			out, err := child.CombinedOutput()
			if err != nil || string(out) != "access-2<nil>" {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, p.refreshed)
}

// A refused refresh needs a sign-in; a failure of the authorization server
// does not. Other accounts keep their tokens.
func TestRefreshThatFails(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	other := c
	other.Account = "work"
	_, err := p.login(other)
	require.NoError(t, err)
	p.token = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	s := NewSource(c)
	_, err = s.Token(t.Context())
	require.NoError(t, err)
	_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.ErrorContains(t, err, "cannot be refreshed")
	require.NotErrorIs(t, err, ErrSignIn)
	a, _, err := c.Status()
	require.NoError(t, err)
	require.True(t, a.SignedIn)

	p.token = nil // the refresh token is the other account's now
	_, err = s.Refused(t.Context(), "access-1", http.StatusUnauthorized, nil)
	require.ErrorIs(t, err, ErrSignIn)
	require.ErrorContains(t, err, "mcp-host login notes")
	a, _, err = c.Status()
	require.NoError(t, err)
	require.False(t, a.SignedIn)
	a, _, err = other.Status()
	require.NoError(t, err)
	require.True(t, a.SignedIn)
}

func TestDamagedStore(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	text, err := os.ReadFile(c.File())
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(c.File(), 0o644))
		_, err = NewSource(c).Token(t.Context())
		require.ErrorContains(t, err, "accessible to other users")
		require.NoError(t, os.Chmod(c.File(), 0o600))
	}
	require.NoError(t, os.WriteFile(c.File(), text[:len(text)/2], 0o600))
	_, err = NewSource(c).Token(t.Context())
	require.ErrorContains(t, err, "is damaged")
	require.NotContains(t, err.Error(), "access-1")
}

// An interrupted sign-in leaves nothing that keeps the next one from working.
func TestInterruptedSignIn(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Login(ctx, c, Prompt{Open: func(string) error { cancel(); return nil }})
	require.Error(t, err)
	_, err = p.login(c)
	require.NoError(t, err)
}

func FuzzParseChallenge(f *testing.F) {
	for _, header := range []string{`Bearer`, `Basic realm="a, Bearer b", Bearer scope="x y", error=e`, `Bearer resource_metadata="https://h/\"x"`, `Bearer scope="`, `=,=`} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		c := ParseChallenge([]string{header})
		if !c.Bearer && (c.Metadata != "" || c.Error != "" || len(c.Scopes) > 0) {
			t.Errorf("values without a challenge: %+v", c)
		}
	})
}

// Some providers allow a registered client only the scopes that it registered for (RFC 7591,
// 2), so that a sign-in with more scopes needs another registration.
func TestMoreScopesNeedAnotherRegistration(t *testing.T) {
	p := newProvider(t)
	p.strict = true
	c := p.config()
	users := c
	users.Subject = "issuer\nalice"
	logins := map[string]func() (SignInStatus, error){
		"by the host": func() (SignInStatus, error) { return p.login(c) },
		"by a link":   func() (SignInStatus, error) { return p.loginByLink(users) },
	}
	for name, of := range map[string]Config{"by the host": c, "by a link": users} {
		t.Run(name, func(t *testing.T) {
			before := len(p.registered)
			login := logins[name]
			_, err := login()
			require.NoError(t, err)
			source := NewSource(of)
			token, err := source.Token(t.Context())
			require.NoError(t, err)
			_, err = source.Refused(t.Context(), token, 403, []string{`Bearer error="insufficient_scope", scope="write"`})
			require.ErrorIs(t, err, ErrSignIn)
			for i := range 2 {
				a, err := login()
				require.NoError(t, err)
				if i == 0 {
					require.Equal(t, []string{"read", "write"}, a.Scopes)
				}
				require.Len(t, p.registered, before+2)
			}
		})
	}
}
