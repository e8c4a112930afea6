package upstream_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A refusal that names the very version that was asked for is not the end.
func TestAVersionThatIsTakenAfterAllIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for supported, want := range map[string]upstream.Era{"2026-07-28": upstream.Modern, "2025-11-25": upstream.Legacy} {
		h := faultserver.Handler()
		var posts atomic.Int32
		s := at(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if posts.Add(1) > 1 {
				h.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":[%q],"requested":"x"}}}`, supported)
		})), func(c *upstream.Config) { c.ProbeTimeout = 30 * time.Second })
		mustDo(t, s, "echo", `{}`)
		require.Equal(t, want, s.Status().Era)
	}
}

// modernWith serves the modern version over HTTP, with the tools in a list.
func modernWith(t *testing.T, tools string) string {
	return serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		m, fault := jsonrpc.Split(body)
		if err != nil || fault != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		result := map[string]string{
			"server/discover": `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
			"tools/list":      `{"tools":` + tools + `}`,
		}[m.Method]
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
}

// A tool that asks for headers that there cannot be is left out, and no other.
func TestAToolThatAsksForImpossibleHeadersIsLeftOut(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	add := func(name, properties string) {
		if list.Len() > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `{"name":%q,"inputSchema":{"type":"object","properties":{%s}}}`, name, properties)
	}
	add("plain", `"a":{"type":"object"}`)
	add("good", `"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"integer","x-mcp-header":"Zone"}`)
	add("empty", `"a":{"type":"string","x-mcp-header":""}`)
	add("object", `"a":{"type":"object","x-mcp-header":"Data"}`)
	add("space", `"a":{"type":"string","x-mcp-header":"My Region"}`)
	add("line break", `"a":{"type":"string","x-mcp-header":"Region\r\nX-Evil: 1"}`)
	add("twice", `"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`)
	add("last", ``)
	s := at(t, modernWith(t, "["+list.String()+"]"), func(c *upstream.Config) { c.Era = upstream.Modern })
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	var all []byte
	for _, tool := range tools {
		all = append(all, tool...)
	}
	require.Len(t, tools, 3, string(all))
	for _, name := range []string{"plain", "good", "last"} {
		require.Contains(t, string(all), `"name":"`+name+`"`)
	}
}

// What a server says unasked is lost before there is a stream for it, so no
// tool is called earlier; one that does not answer that is not waited for
// without end, and at its start not at all.
func TestNothingIsCalledBeforeTheStreamForQuestionsIsOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers bool
		patient time.Duration
		early   bool // whether it is called before there is an answer
	}{
		"a stream":            {true, time.Hour, false},
		"nothing":             {false, 100 * time.Millisecond, true},
		"nothing for a while": {false, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := faultserver.Handler("-era", "legacy")
			var open, early atomic.Int32
			end := make(chan struct{})
			s := at(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				switch {
				case r.Method == http.MethodGet && !c.answers:
					select {
					case <-end:
					case <-r.Context().Done():
					}
					return
				case r.Method == http.MethodGet:
					time.Sleep(100 * time.Millisecond) // by then a client in a hurry would have asked
					open.Store(1)
				case bytes.Contains(body, []byte(`"tools/call`)) && open.Load() == 0:
					early.Add(1)
				}
				h.ServeHTTP(w, r)
			})), func(cfg *upstream.Config) { cfg.Era, cfg.ProbeTimeout = upstream.Legacy, c.patient })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := s.Tools(ctx) // which waits for no stream
			require.NoError(t, err)
			ending := sync.OnceFunc(func() {
				open.Store(1)
				close(end)
			})
			defer ending()
			if !c.early && !c.answers {
				time.AfterFunc(100*time.Millisecond, ending)
			}
			mustDo(t, s, "echo", `{}`)
			require.Equal(t, c.early, early.Load() > 0)
		})
	}
}

// A busy server answers nothing for a time, so that a list which takes long says
// that the stream may take long, too.
func TestABusyServerIsGivenTimeToOpenTheStream(t *testing.T) {
	t.Parallel()
	h := faultserver.Handler("-era", "legacy")
	var open, early atomic.Int32
	s := at(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case r.Method == http.MethodGet:
			time.Sleep(time.Second)
			open.Store(1)
		case bytes.Contains(body, []byte(`"tools/list`)):
			time.Sleep(700 * time.Millisecond)
		case bytes.Contains(body, []byte(`"tools/call`)) && open.Load() == 0:
			early.Add(1)
		}
		h.ServeHTTP(w, r)
	})), func(cfg *upstream.Config) { cfg.Era, cfg.ProbeTimeout = upstream.Legacy, 100*time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.Tools(ctx)
	require.NoError(t, err)
	mustDo(t, s, "echo", `{}`)
	require.Zero(t, early.Load())
}
