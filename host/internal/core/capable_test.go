package core_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// taskServer answers a call with a task if the client declares that it can
// fetch one.
type taskServer struct {
	modern bool

	mu    sync.Mutex
	calls []string // params of tools/call
}

const taskCapabilities = `{"tools":{},"experimental":{"x":{}},"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`

func (s *taskServer) serve(_ context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		if len(m.ID) == 0 {
			continue
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, s.answer(m.Method, string(m.Params))) //nolint:errcheck // the host is gone
	}
	return lines.Err()
}

func (s *taskServer) answer(method, params string) string {
	switch {
	case method == "initialize" && !s.modern:
		return `"result":{"protocolVersion":"2025-11-25","capabilities":` + taskCapabilities + `,"serverInfo":{"name":"t","version":"1"}}`
	case method == "server/discover" && s.modern:
		return `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + taskCapabilities + `}`
	case method == "tools/list":
		return `"result":{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"}}]}`
	case method == "tools/call":
		s.mu.Lock()
		s.calls = append(s.calls, params)
		s.mu.Unlock()
		if strings.Contains(params, "tasks") || strings.Contains(params, `"task"`) {
			return `"result":{"resultType":"task","taskId":"1"}`
		}
		return `"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	}
	return `"error":{"code":-32601,"message":"no"}`
}

// A client that can fetch tasks cannot do so through the host, so no server
// may hear of it; what works through the host is passed on.
func TestOnlyRoutedCapabilitiesAreDeclared(t *testing.T) {
	const caps = `{"elicitation":{},"experimental":{"x":{}},"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + caps + `}`
	for _, server := range []bool{true, false} {
		for _, client := range []bool{true, false} {
			t.Run(fmt.Sprintf("server modern %t, client modern %t", server, client), func(t *testing.T) {
				s := &taskServer{modern: server}
				a, err := core.Open(config.Config{Servers: []config.Server{{Config: upstream.Config{Name: "m", Serve: s.serve}}}})
				require.NoError(t, err)
				defer a.Close()
				a.List(t.Context()) // it runs

				var in []string
				if client {
					in = []string{
						`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`,
						`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"m__a",` + meta + `}}`,
					}
				} else {
					in = []string{
						`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + caps + `,"clientInfo":{"name":"c","version":"1"}}}`,
						`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
						`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"m__a","task":{"ttl":1000}}}`,
					}
				}
				var out strings.Builder
				require.NoError(t, a.Gateway.ServeStdio(t.Context(), strings.NewReader(strings.Join(in, "\n")+"\n"), &out, t.Logf))
				require.Contains(t, out.String(), `"done"`)
				require.Contains(t, out.String(), `"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}`, "what the server declared is shown")
				require.NotContains(t, out.String(), "tasks")
				require.NotContains(t, out.String(), "experimental")

				require.Len(t, s.calls, 1)
				if server {
					require.Contains(t, s.calls[0], `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`)
				}
			})
		}
	}
}
