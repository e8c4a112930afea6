package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// web is a legacy server over streamable HTTP with one tool, whose calls, and
// what opens the stream of what it says unasked, are for a test to answer.
func web(t *testing.T, called func(w http.ResponseWriter, r *http.Request, id, arguments string), opened http.HandlerFunc, change ...func(*upstream.Config)) *upstream.Server {
	t.Helper()
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if r.Method == http.MethodPost && (err != nil || json.Unmarshal(body, &m) != nil) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
		switch {
		case r.Method == http.MethodGet && opened != nil:
			opened(w, r)
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
			answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}`)
		case m.Method == "tools/list":
			answer(`{"tools":[{"name":"t"}]}`)
		case m.Method == "tools/call":
			called(w, r, string(m.ID), string(m.Params.Arguments))
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	return at(t, url, func(c *upstream.Config) {
		c.Era = upstream.Legacy
		for _, f := range change {
			f(c)
		}
	})
}

func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, text)
	http.NewResponseController(w).Flush()
}

// A server need not end the stream with its answer: the connection is given
// up, or there would soon be none left for other calls.
func TestAStreamThatGoesOnAfterTheAnswerIsLeft(t *testing.T) {
	t.Parallel()
	var open sync.WaitGroup
	s := web(t, func(w http.ResponseWriter, r *http.Request, id, _ string) {
		open.Add(1)
		defer open.Done()
		stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":"+id+",\"result\":{\"content\":[]}}\n\n")
		<-r.Context().Done()
	}, nil)
	for range 3 {
		mustDo(t, s, "t", `{}`)
	}
	endsSoon(t, open.Wait, "the streams are still held")
	require.Zero(t, s.Status().Restarts)
}

// Who is too busy for the stream of what is said unasked is asked again.
func TestAStreamThatIsRefusedForNowIsAskedForAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	opened := make(chan struct{})
	s := web(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		stream(w, ": hello\n\n")
		close(opened)
		<-r.Context().Done()
	})
	mustList(t, s)
	select {
	case <-opened:
	case <-time.After(20 * time.Second):
		t.Fatal("it was asked for once")
	}
}

// A server that wants its stream taken up again at once is not asked without a
// pause.
func TestAStreamIsNotAskedForWithoutAPause(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var times []time.Time
	enough := make(chan struct{})
	s := web(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		stream(w, "retry: 1\n\n")
		mu.Lock()
		defer mu.Unlock()
		if times = append(times, time.Now()); len(times) == 5 {
			close(enough)
		}
	})
	mustList(t, s)
	<-enough
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, times[4].Sub(times[0]), 300*time.Millisecond)
}

// A refusal that is the answer to a call is that, whatever its words: the
// session is not over, and nobody else's call is lost.
func TestARefusalThatIsAnAnswerEndsNoSession(t *testing.T) {
	t.Parallel()
	held, hold := make(chan struct{}), make(chan struct{})
	s := web(t, func(w http.ResponseWriter, _ *http.Request, id, arguments string) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(arguments, "wait") {
			close(held)
			<-hold
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"which session?"}}`, id)
	}, nil)
	mustList(t, s)
	waited := make(chan error, 1)
	go func() {
		_, err := do(t.Context(), s, "t", `{"wait":1}`)
		waited <- err
	}()
	<-held
	_, err := do(t.Context(), s, "t", `{}`)
	require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "which session?")
	close(hold)
	require.NoError(t, <-waited)
	require.Zero(t, s.Status().Restarts)
}

func mustList(t *testing.T, s *upstream.Server) {
	t.Helper()
	_, err := s.Tools(t.Context())
	require.NoError(t, err)
}
