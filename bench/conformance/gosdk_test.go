//go:build oracle

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// withHeaders adds headers to every request.
type withHeaders map[string]string

func (h withHeaders) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, value := range h {
		request.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(request)
}

// TestGoSDK lists and calls with the official Go SDK.
func TestGoSDK(t *testing.T) {
	eachDoor(t, func(t *testing.T, d door, era string) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var transport mcp.Transport = &mcp.CommandTransport{Command: exec.Command(d.command, d.args...)}
		if d.url != "" {
			transport = &mcp.StreamableClientTransport{
				Endpoint: d.url, HTTPClient: &http.Client{Transport: withHeaders(d.headers())},
			}
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "toolroom-tests", Version: "1"}, nil)
		session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolVersions[era]})
		require.NoError(t, err)
		require.Equal(t, protocolVersions[era], session.InitializeResult().ProtocolVersion)
		var names []string
		for tool, err := range session.Tools(ctx, nil) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		require.Subset(t, names, d.tools)
		for _, c := range d.calls(t) {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: c.Name, Arguments: c.Arguments})
			require.NoError(t, err)
			raw, err := json.Marshal(result)
			require.NoError(t, err)
			var got answer
			require.NoError(t, json.Unmarshal(raw, &got))
			c.check(t, got)
		}
		_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "no_such_tool"})
		var wire *jsonrpc.Error
		require.True(t, errors.As(err, &wire), "an unknown tool is a protocol error: %v", err)
		require.EqualValues(t, jsonrpc.CodeInvalidParams, wire.Code)
		require.NoError(t, session.Close())
	})
}
