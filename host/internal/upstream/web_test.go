package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ways are the forms in which the fixture is reached over HTTP.
var ways = []struct {
	name string
	args []string
	era  upstream.Era
	path string
}{
	{"legacy", []string{"-era", "legacy"}, upstream.Legacy, "/mcp"},
	{"legacy as JSON", []string{"-era", "legacy", "-json"}, upstream.Legacy, "/mcp"},
	{"modern", []string{"-era", "modern"}, upstream.Modern, "/mcp"},
	{"modern as JSON", []string{"-era", "modern", "-json"}, upstream.Modern, "/mcp"},
	{"SSE", []string{"-era", "legacy"}, upstream.Legacy, "/sse"},
}

// reach returns the fixture served over HTTP.
func reach(t *testing.T, path string, change func(*upstream.Config), args ...string) *upstream.Server {
	t.Helper()
	base := strings.TrimSuffix(serveHTTP(t, faultserver.Handler(args...)), "/mcp")
	return at(t, base+path, change)
}

func TestEveryWayOverHTTPDoesWhatStdioDoes(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			changed := make(chan struct{}, 10)
			s := reach(t, way.path, nil, append(way.args, "-page", "5")...)
			s.OnChange(func() { changed <- struct{}{} })
			tools, err := s.Tools(t.Context())
			require.NoError(t, err)
			require.Len(t, tools, 27)
			require.Equal(t, faultserver.Definition("echo"), string(tools[0]), "definitions are forwarded as received")
			require.Equal(t, way.era, s.Status().Era)
			require.Equal(t, upstream.Ready, s.Status().State)
			require.Equal(t, `{"a":1}`, textOf(t, mustDo(t, s, "echo", `{"a":1}`)))
			raw := `{"content":[{"type":"hologram","data":"<&>","n":1.0}],"x":{"b":1,"a":2}}`
			require.Equal(t, raw, mustDo(t, s, "raw", `{"raw":`+raw+`}`))
			_, err = do(t.Context(), s, "rpcerror", `{}`)
			require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err))
			_, err = s.Ping(t.Context())
			require.NoError(t, err)

			var notes atomic.Int32
			req := request("progress", `{"arguments":{"n":50},"_meta":{"progressToken":"mine"}}`)
			req.OnNotify = func(_ string, params json.RawMessage) {
				require.Equal(t, fmt.Sprintf(`{"progressToken":"mine","progress":%d,"total":50,"x-odd":1.0}`, notes.Add(1)), string(params))
			}
			_, err = s.Call(t.Context(), req)
			require.NoError(t, err)
			require.EqualValues(t, 50, notes.Load())

			// A stream of what is said unasked is opened after the handshake.
			require.Eventually(t, func() bool {
				mustDo(t, s, "add_tool", `{"text":"late"}`)
				select {
				case <-changed:
					return true
				default:
					return false
				}
			}, time.Minute, 20*time.Millisecond)
			require.Equal(t, upstream.Ready, s.Status().State)
			require.Zero(t, s.Status().Restarts)
		})
	}
}

func TestManyCallsAtOnceOverHTTP(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := reach(t, way.path, nil, way.args...)
			echoAtOnce(t, s, 16, 8)
			require.Len(t, textOf(t, mustDo(t, s, "blob", `{"n":3000000}`)), 3000000)
		})
	}
}

func TestCancelOverHTTP(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			h := hold(faultserver.Handler(way.args...))
			close(h.let)
			s := at(t, strings.TrimSuffix(serveHTTP(t, h), "/mcp")+way.path, nil)
			mustDo(t, s, "echo", `{}`)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := do(ctx, s, "sleep", `{"n":60000}`)
				ended <- err
			}()
			<-h.begun
			cancel()
			require.Equal(t, toolerr.Cancelled, toolerr.CodeOf(<-ended))
			require.Eventually(t, func() bool {
				seen := textOf(t, mustDo(t, s, "cancelled", `{}`))
				return seen != "" && strings.HasPrefix(seen, "closed:") == (way.era == upstream.Modern)
			}, time.Minute, 5*time.Millisecond)
		})
	}
}

func TestWhatTheServerAsksIsAnsweredOverHTTP(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		if way.era == upstream.Modern {
			continue // it asks in its results
		}
		s := reach(t, way.path, func(c *upstream.Config) { c.Roots = func() []string { return []string{"file:///a"} } }, way.args...)
		require.Equal(t, `{"roots":[{"uri":"file:///a"}]}`, textOf(t, mustDo(t, s, "roots", `{}`)), way.name)
	}
}

func TestABrokenStreamIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	s := reach(t, "/mcp", nil, "-era", "legacy")
	require.Equal(t, "done", textOf(t, mustDo(t, s, "drop", `{}`)))

	// The modern version has no such thing: the call is lost, and only it.
	s = reach(t, "/mcp", nil, "-era", "modern")
	_, err := do(t.Context(), s, "drop", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "ended the stream before its answer")
	mustDo(t, s, "echo", `{}`)
	require.Zero(t, s.Status().Restarts)
}

func TestASessionThatIsOverIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s := reach(t, "/mcp", nil, "-era", "legacy")
	mustDo(t, s, "expire", `{}`)
	mustDo(t, s, "echo", `{}`) // is not lost
	require.Equal(t, 1, s.Status().Restarts)
}

// The first of several requests that is told so ends the connection; the server
// has not taken the others either.
func TestCallsUnderWayWhenASessionIsOverAreNotLost(t *testing.T) {
	t.Parallel()
	h := faultserver.Handler("-era", "legacy")
	var calls atomic.Int32
	second, anew := make(chan struct{}), make(chan struct{})
	var sessions atomic.Int32
	s := at(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		switch {
		case bytes.Contains(body, []byte(`"initialize"`)):
			if sessions.Add(1) == 2 {
				close(anew)
			}
		case bytes.Contains(body, []byte(`"tools/call"`)):
			switch calls.Add(1) {
			case 1: // is told as soon as the second is under way
				<-second
				http.NotFound(w, r)
				return
			case 2: // is told when the next session has begun
				close(second)
				<-anew
				http.NotFound(w, r)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})), nil)
	_, err := s.Tools(t.Context())
	require.NoError(t, err)
	echoAtOnce(t, s, 2, 1)
	require.Equal(t, 1, s.Status().Restarts)
}

func TestSessionsAreEndedAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	var deleted atomic.Int32
	h := faultserver.Handler("-era", "legacy")
	web := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	s := at(t, web, nil)
	mustDo(t, s, "echo", `{}`)
	s.Close()
	require.EqualValues(t, 1, deleted.Load())
}

func TestHeadersAndCredentials(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		s := reach(t, way.path, func(c *upstream.Config) {
			c.Token = "sesame"
			c.Headers = map[string]secret.Text{"X-Team": "a b", "Authorization": "Basic lost", "Mcp-Session-Id": "forged", "Mcp-Method": "forged"}
		}, append(way.args, "-token", "sesame")...)
		var got map[string]string
		require.NoError(t, json.Unmarshal([]byte(textOf(t, mustDo(t, s, "headers", `{}`))), &got), way.name)
		require.Equal(t, "Bearer sesame", got["Authorization"])
		require.Equal(t, "a b", got["X-Team"])
		switch {
		case way.era == upstream.Modern:
			require.Equal(t, "tools/call", got["Mcp-Method"])
			require.Equal(t, "headers", got["Mcp-Name"])
			require.Equal(t, "2026-07-28", got["Mcp-Protocol-Version"])
		case way.path == "/mcp":
			require.Equal(t, "2025-11-25", got["Mcp-Protocol-Version"])
		}

		s = reach(t, way.path, func(c *upstream.Config) { c.Token = "wrong" }, append(way.args, "-token", "sesame")...)
		_, err := do(t.Context(), s, "echo", `{}`)
		require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err), way.name)
		require.NotContains(t, err.Error(), "wrong")
		require.Equal(t, upstream.CredentialsRejected, s.Status().State)
		require.Equal(t, upstream.StageStart, s.Status().Last.Stage)
	}
}

func TestRedirectsDoNotLeaveTheOrigin(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int32
	thief := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			stolen.Add(1)
		}
	}))
	h := faultserver.Handler("-era", "legacy")
	web := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, thief, http.StatusTemporaryRedirect)
		case "/get":
			http.Redirect(w, r, "/mcp", http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	for path, want := range map[string]string{"/away": "it redirects to " + strings.TrimSuffix(thief, "/mcp"), "/get": "it turns POST into GET"} {
		s := at(t, strings.TrimSuffix(web, "/mcp")+path, func(c *upstream.Config) { c.Token = "sesame" })
		_, err := do(t.Context(), s, "echo", `{}`)
		require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
		require.ErrorContains(t, err, want)
	}
	require.Zero(t, stolen.Load())
	mustDo(t, at(t, strings.TrimSuffix(web, "/mcp")+"/near", nil), "echo", `{}`)
}

func TestANameMustNotLeadToAPrivateAddress(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, faultserver.Handler())
	u, err := url.Parse(web)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	mustDo(t, at(t, "http://localhost:"+port+"/mcp", nil), "echo", `{}`)
	for _, c := range []struct {
		host, address string
		private, ok   bool
	}{
		{"127.0.0.1", "127.0.0.1:80", false, true},
		{"10.1.2.3", "10.1.2.3:80", false, true},
		{"[::1]", "[::1]:80", false, true},
		{"example.com", "93.184.215.14:443", false, true},
		{"example.com", "127.0.0.1:443", false, false},
		{"example.com", "10.1.2.3:443", false, false},
		{"example.com", "[::ffff:10.1.2.3]:443", false, false},
		{"example.com", "[fd00::1]:443", false, false},
		{"example.com", "100.64.0.1:443", false, false},
		{"example.com", "10.1.2.3:443", true, true},
		{"example.com", "169.254.169.254:80", true, false},
		{"metadata.internal", "169.254.169.254:80", false, false},
		{"wiki.internal", "10.1.2.3:80", false, true},
		{"wiki", "10.1.2.3:80", false, true},
		{"10.1.2.3", "127.0.0.1:80", false, false},
		{"example.com", "198.18.0.1:443", false, false},
		{"example.com", "198.18.0.1:443", true, true}, // what some proxies answer for every name
		{"example.com", "[64:ff9b::808:808]:443", false, false},
		{"example.com", "[64:ff9b::808:808]:443", true, true}, // what DNS64 answers for every IPv4 name
	} {
		err := upstream.CheckAddress(strings.Trim(c.host, "[]"), c.private, c.address)
		require.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
	}
	// The transport dials the ASCII form of a name.
	require.ErrorContains(t, upstream.DialGuarded(t.Context(), "exämple.com", u.Host), "not a public address")
	for _, address := range []string{
		"168.63.129.16", "192.0.0.192", "100.100.100.200", "169.254.169.254", "0.1.2.3", "240.0.0.1", "255.255.255.255", "224.0.0.1", "192.88.99.1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1", "2001:0:7f00:1::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "ff02::1",
	} {
		for _, host := range []string{"example.com", "metadata.internal"} {
			require.Error(t, upstream.CheckAddress(host, true, netip.AddrPortFrom(netip.MustParseAddr(address), 80).String()), "%s at %s", host, address)
		}
	}
}

func TestAServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(faultserver.Handler())
	address := web.URL + "/mcp?key=hidden"
	web.Close()
	s := at(t, address, nil)
	_, err := do(t.Context(), s, "echo", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "cannot reach http://127.0.0.1:")
	require.NotContains(t, err.Error(), "hidden")
	require.NotContains(t, s.Status().URL, "hidden")
}

func TestOddAnswersOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		code   toolerr.Code
		want   string
	}{
		"a page":        {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>hello") }, toolerr.ProtocolError, "not with a message"},
		"rate limit":    {func(w http.ResponseWriter) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) }, toolerr.RateLimited, "try again after"},
		"unavailable":   {func(w http.ResponseWriter) { http.Error(w, "come back later", http.StatusServiceUnavailable) }, toolerr.TransportError, "come back later"},
		"forbidden":     {func(w http.ResponseWriter) { w.WriteHeader(403) }, toolerr.AuthFailed, "403"},
		"an empty body": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") }, toolerr.ProtocolError, "belongs to another request"},
		"other id": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"other","result":{}}`)
		}, toolerr.ProtocolError, "belongs to another request"},
		"too large": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"`+strings.Repeat("x", 2<<20)+`"}`)
		}, toolerr.TooLarge, "more than 1048576 bytes"},
		"too large an event": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: "+strings.Repeat("x", 2<<20)+"\n\n")
		}, toolerr.TooLarge, "more than 1048576 bytes"},
		"a stream without end": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\ndata: noise\n\n")
		}, toolerr.ServerOffline, "ended the stream before its answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := faultserver.Handler("-era", "legacy", "-json")
			web := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Odd") != "" && r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" && r.ContentLength > 200 {
					c.answer(w)
					return
				}
				h.ServeHTTP(w, r)
			}))
			s := at(t, web, func(c *upstream.Config) {
				c.MaxLine = 1 << 20
				c.Headers = map[string]secret.Text{"X-Odd": "yes"}
			})
			_, err := do(t.Context(), s, "echo", `{"pad":"`+strings.Repeat("x", 200)+`"}`)
			require.Equal(t, c.code, toolerr.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, c.want)
			mustDo(t, s, "echo", `{}`)
		})
	}
}

func TestAServerOfTheOldTransportIsFoundOut(t *testing.T) {
	t.Parallel()
	h := faultserver.Handler("-era", "legacy")
	web := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/mcp" && r.Method == http.MethodGet:
			r.URL.Path = "/sse"
		case r.URL.Path == "/mcp":
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(w, r)
	}))
	s := at(t, web, nil)
	mustDo(t, s, "echo", `{}`)
	require.Equal(t, upstream.Legacy, s.Status().Era)
}
