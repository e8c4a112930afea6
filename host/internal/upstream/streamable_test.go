package upstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// at returns a server that is reached at an address.
func at(t *testing.T, url string, change func(*upstream.Config)) *upstream.Server {
	t.Helper()
	cfg := upstream.Config{Name: "fix", URL: url, StartTimeout: time.Minute}
	if change != nil {
		change(&cfg)
	}
	s, err := upstream.New(cfg, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// mcpGo is a server of mcp-go's with one tool.
func mcpGo() *server.MCPServer {
	s := server.NewMCPServer("other", "2", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("hello", mcp.WithString("who")), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("hello " + req.GetString("who", "nobody")), nil
	})
	return s
}

// goSDK is the same of the official Go SDK's.
func goSDK() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "other", Version: "2"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "hello"}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
		Who string `json:"who"`
	}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello " + in.Who}}}, nil, nil
	})
	return s
}

func official(opt *sdk.StreamableHTTPOptions) http.Handler {
	one := goSDK()
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return one }, opt)
}

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(func() { endWeb(t, web) })
	return web.URL + "/mcp"
}

// endWeb ends a server whose handlers, other libraries' among them, may be
// holding streams open: Close by itself would wait for them without end.
func endWeb(t *testing.T, web *httptest.Server) {
	closed := make(chan struct{})
	go func() {
		web.Close()
		close(closed)
	}()
	for range 100 {
		select {
		case <-closed:
			return
		case <-time.After(50 * time.Millisecond):
			go web.CloseClientConnections()
		}
	}
	t.Log("a handler has not returned; it is left behind")
}

func TestServersOfOtherLibrariesAnswerOverHTTP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		handler http.Handler
		auto    upstream.Era // what is found out
	}{
		{"mcp-go", server.NewStreamableHTTPServer(mcpGo()), upstream.Modern},
		{"go-sdk", official(&sdk.StreamableHTTPOptions{}), upstream.Legacy},
		{"go-sdk as JSON", official(&sdk.StreamableHTTPOptions{JSONResponse: true}), upstream.Legacy},
		{"go-sdk stateless", official(&sdk.StreamableHTTPOptions{Stateless: true}), upstream.Modern},
	} {
		for _, era := range []upstream.Era{upstream.Legacy, upstream.Auto, upstream.Modern} {
			want := era
			if era == upstream.Auto {
				want = c.auto
			}
			if want == upstream.Modern && c.auto != upstream.Modern {
				continue
			}
			t.Run(c.name+" "+string(era), func(t *testing.T) {
				s := at(t, serveHTTP(t, c.handler), func(c *upstream.Config) { c.Era, c.ProbeTimeout = era, time.Minute })
				tools, err := s.Tools(t.Context())
				require.NoError(t, err)
				require.Len(t, tools, 1)
				require.Equal(t, "hello you", textOf(t, mustDo(t, s, "hello", `{"who":"you"}`)))
				_, err = s.Ping(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, s.Status().Era)
			})
		}
	}
}

func TestServersOfOtherLibrariesAnswerOverSSE(t *testing.T) {
	t.Parallel()
	var old *server.SSEServer
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { old.ServeHTTP(w, r) }))
	defer endWeb(t, web)
	old = server.NewSSEServer(mcpGo(), server.WithBaseURL(web.URL)) // names its address in full
	one := goSDK()
	for name, address := range map[string]string{
		"mcp-go": web.URL + "/sse",
		"go-sdk": serveHTTP(t, sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return one }, nil)),
	} {
		s := at(t, address, func(c *upstream.Config) { c.Transport = upstream.SSE })
		require.Equal(t, "hello you", textOf(t, mustDo(t, s, "hello", `{"who":"you"}`)), name)
		s.Close()
	}
}
