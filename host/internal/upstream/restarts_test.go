package upstream_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The tests of this file run one by one: each wants to know how often a server
// was started anew, which a lack of descriptors would add to.

// held is a handler whose sleep calls begin, and are held until they are let go.
type held struct {
	http.Handler
	begun chan struct{} // one for each
	let   chan struct{}
}

func hold(h http.Handler) *held {
	return &held{h, make(chan struct{}, 100), make(chan struct{})}
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if bytes.Contains(body, []byte(`"sleep"`)) {
		h.begun <- struct{}{}
		<-h.let
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.Handler.ServeHTTP(w, r)
}

// sleeping begins n calls that the server holds.
func (h *held) sleeping(t *testing.T, s *upstream.Server, n int) chan error {
	ended := make(chan error, n)
	for range n {
		go func() {
			_, err := do(t.Context(), s, "sleep", `{"n":1}`)
			ended <- err
		}()
	}
	for range n {
		<-h.begun
	}
	return ended
}

// A server that goes takes no new connection, and still answers what it has
// begun: those calls are not lost with one that cannot reach it, and neither is
// that once it is back.
func TestCallsThatAServerEndsBeforeItGoes(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			h := hold(faultserver.Handler("-era", era))
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			serve := func(l net.Listener) *http.Server {
				one := &http.Server{Handler: h}
				one.SetKeepAlivesEnabled(false)
				go one.Serve(l) //nolint:errcheck // it is closed
				return one
			}
			first := serve(listener)
			defer first.Close() //nolint:errcheck // the end of the test
			s := at(t, "http://"+listener.Addr().String()+"/mcp", nil)
			mustList(t, s)
			ended := h.sleeping(t, s, 5)
			require.NoError(t, listener.Close())
			late := make(chan error, 1)
			go func() {
				_, err := do(t.Context(), s, "echo", `{}`)
				late <- err
			}()
			require.Eventually(t, func() bool { return s.Status().Last != nil }, time.Minute, time.Millisecond, "it is known to have gone")
			second := serve(listenAgain(t, listener.Addr().String()))
			defer second.Close()           //nolint:errcheck // the end of the test
			if err := <-late; err != nil { // on a machine that stood still
				require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
				t.Log(err)
			}
			close(h.let)
			for range 5 {
				require.NoError(t, <-ended)
			}
		})
	}
}

// Who is told to show other credentials, or that there is no such session, is
// told so alone.
func TestARefusalOfOneCallLosesNoOther(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusNotFound} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			var refuse atomic.Bool
			f := faultserver.Handler("-era", "legacy")
			h := hold(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err == nil && bytes.Contains(body, []byte(`"echo"`)) && refuse.CompareAndSwap(true, false) {
					w.WriteHeader(status)
					return
				} else {
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
				f.ServeHTTP(w, r)
			}))
			s := at(t, serveHTTP(t, h), nil)
			mustList(t, s)
			ended := h.sleeping(t, s, 5)
			refuse.Store(true)
			_, err := do(t.Context(), s, "echo", `{}`)
			if status == http.StatusUnauthorized {
				require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err))
			} else {
				require.NoError(t, err)
			}
			mustDo(t, s, "echo", `{}`) // in the next session
			close(h.let)
			for range 5 {
				require.NoError(t, <-ended)
			}
			require.Equal(t, 1, s.Status().Restarts)
		})
	}
}

// The end of the host does not wait for calls in a session that is over.
func TestTheEndDoesNotWaitForLastAnswers(t *testing.T) {
	h := hold(faultserver.Handler("-era", "legacy"))
	s := at(t, serveHTTP(t, h), nil)
	ended := h.sleeping(t, s, 1)
	mustDo(t, s, "expire", `{}`)
	mustDo(t, s, "echo", `{}`)
	endsSoon(t, s.Close, "it waits")
	close(h.let)
	require.Error(t, <-ended)
}

// A server that is started anew without a word may know no session, want one
// where it wanted none, or be of another era: the calls of then are sent again
// as it wants them, once.
func TestAServerThatIsAnotherAfterARestart(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","error":{"code":-32000,"message":%q},"id":null}`
	says := func(status int, words string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, refusal, words)
		}
	}
	for name, c := range map[string]struct {
		before, after string // eras
		refuse        func(http.ResponseWriter)
	}{
		"TypeScript, one session":    {"legacy", "legacy", says(400, "Bad Request: Server not initialized")},
		"TypeScript, several":        {"legacy", "legacy", says(400, "Bad Request: No valid session ID provided")},
		"Rust":                       {"legacy", "legacy", func(w http.ResponseWriter) { http.Error(w, "Unauthorized: Session not found", http.StatusUnauthorized) }},
		"Python":                     {"legacy", "legacy", says(404, "Session not found")},
		"modern, before that legacy": {"legacy", "modern", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }},
		"legacy, before that modern": {"modern", "legacy", says(400, "Bad Request: Mcp-Session-Id header is required")},
		"of another version":         {"modern", "legacy", says(400, "Bad Request: Unsupported protocol version: 2026-07-28")},
		"modern, and says so":        {"legacy", "modern", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := faultserver.Handler("-era", c.before), faultserver.Handler("-era", c.after)
			var ran atomic.Int32
			var handling sync.WaitGroup
			var known, restarted atomic.Bool
			url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				anew := restarted.Load() // what was before may still be at its end when it is
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				if bytes.Contains(body, []byte(`"tools/call"`)) {
					handling.Add(1)
					defer handling.Done()
				}
				opens := bytes.Contains(body, []byte(`"initialize"`)) || bytes.Contains(body, []byte(`"server/discover"`))
				if opens && anew && (c.after == "modern") == bytes.Contains(body, []byte(`"server/discover"`)) {
					known.Store(true)
				}
				if anew && !opens && !known.Load() && r.Method == http.MethodPost && c.refuse != nil {
					c.refuse(w)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				present := before
				if anew {
					present = after
				}
				told := &status{ResponseWriter: w, code: http.StatusOK}
				present.ServeHTTP(told, r)
				if bytes.Contains(body, []byte(`"tools/call"`)) && anew && told.code == http.StatusOK {
					ran.Add(1)
				}
			}))
			s := at(t, url, nil)
			mustDo(t, s, "echo", `{}`)
			require.Equal(t, upstream.Era(c.before), s.Status().Era)
			restarted.Store(true)
			echoAtOnce(t, s, 20, 1)
			handling.Wait()
			require.EqualValues(t, 20, ran.Load())
			require.Equal(t, upstream.Era(c.after), s.Status().Era)
			require.Equal(t, 1, s.Status().Restarts)
		})
	}
}

// status remembers what a request was answered with.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// One that never takes a call says why, in the end.
func TestAServerThatKnowsNoSessionAtAll(t *testing.T) {
	var asked atomic.Int32
	s := web(t, func(w http.ResponseWriter, _ *http.Request, _, _ string) {
		asked.Add(1)
		http.Error(w, "your session is odd", http.StatusBadRequest)
	}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := do(ctx, s, "t", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "your session is odd")
	require.EqualValues(t, 3, asked.Load())
	require.False(t, strings.Contains(err.Error(), "\n"))
}

// A connection that the server has ended while nobody used it loses no call.
func TestAConnectionThatEndedUnusedLosesNoCall(t *testing.T) {
	var calls, ran atomic.Int32
	f := faultserver.Handler("-era", "modern", "-json")
	s := at(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			f.ServeHTTP(w, r)
			return
		}
		ran.Add(1)
		answer := httptest.NewRecorder()
		f.ServeHTTP(answer, r)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", answer.Body.Len(), answer.Body) //nolint:errcheck // a test's
	})), func(c *upstream.Config) { c.Era = upstream.Modern })
	mustList(t, s)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				calls.Add(1)
				_, err := do(t.Context(), s, "echo", `{}`)
				if err != nil && (strings.Contains(err.Error(), "idle connection") || strings.Contains(err.Error(), "readLoop")) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, ran.Load(), calls.Load(), "none is made twice")
}
