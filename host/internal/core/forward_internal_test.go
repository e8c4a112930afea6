package core

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// mute serves a handshake, and answers nothing else than pings.
func mute(_ context.Context, in io.Reader, out io.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		switch m.Method {
		case "initialize":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"x"}}}`+"\n", m.ID)
		case "ping":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
		}
	}
	return nil
}

// A server that leaves a message that is no call without an answer has as long
// for it as for a call: nobody, and not the end of the host, waits for ever. What
// its client is asked meanwhile is not counted.
func TestMessagesHaveAnEnd(t *testing.T) {
	cfg := config.Config{Servers: []config.Server{{Config: upstream.Config{Name: "s", Era: upstream.Legacy, Serve: mute}}}}
	cfg.Stages.Timeout.Default = 50 * time.Millisecond
	a, _ := within(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, method := range []string{"resources/read", "prompts/get", "completion/complete"} {
		_, err := a.forwardRequest(ctx, &call.UpstreamRequest{Server: "s", Method: method, Params: json.RawMessage(`{"uri":"x:y"}`)})
		require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
		require.ErrorContains(t, err, method+" did not answer within 50ms")
	}
}
