package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// progressOf runs one call on a server whose clock the tool advances, and
// returns the lines written.
func progressOf(t *testing.T, meta string, fn func(ctx context.Context, tick func(time.Duration))) []string {
	t.Helper()
	clock := time.Unix(1000, 0)
	h := server.NewMCPServer("test", "1")
	h.AddTool(mcp.NewTool("work"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fn(ctx, func(d time.Duration) { clock = clock.Add(d) })
		return mcp.NewToolResultText("done"), nil
	})
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work"` + meta + `}}`)
	var out bytes.Buffer
	require.NoError(t, ServeStdio(t.Context(), h, in, &out, ServeOptions{now: func() time.Time { return clock }}))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// Increasing, at most one a second, before the answer.
func TestProgress(t *testing.T) {
	lines := progressOf(t, `,"_meta":{"progressToken":"t\u0031"}`, func(ctx context.Context, tick func(time.Duration)) {
		Progress(ctx, 1, 10, "one")
		Progress(ctx, 2, 10, "too soon")
		tick(time.Second)
		Progress(ctx, 1, 10, "not more")
		Progress(ctx, 0.5, 10, "less")
		Progress(ctx, math.NaN(), 10, "no number")
		Progress(ctx, math.Inf(1), 10, "no number")
		Progress(ctx, 3.25, 0, "")
		tick(999 * time.Millisecond)
		Progress(ctx, 4, 10, "too soon")
		tick(time.Millisecond)
		Progress(ctx, 5, math.Inf(1), "a \"<b>\"")
	})
	require.Len(t, lines, 4)
	for i, want := range []string{
		`{"progressToken":"t\u0031","progress":1,"total":10,"message":"one"}`,
		`{"progressToken":"t\u0031","progress":3.25}`,
		`{"progressToken":"t\u0031","progress":5,"message":"a \"<b>\""}`,
	} {
		require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":`+want+`}`, lines[i])
	}
	require.Contains(t, lines[3], `"result"`)
}

// Without a token, or with an invalid one, no progress is sent.
func TestProgressWithoutToken(t *testing.T) {
	for _, meta := range []string{``, `,"_meta":{}`, `,"_meta":null`, `,"_meta":{"progressToken":null}`, `,"_meta":{"progressToken":{}}`} {
		lines := progressOf(t, meta, func(ctx context.Context, _ func(time.Duration)) { Progress(ctx, 1, 2, "x") })
		require.Len(t, lines, 1, meta)
	}
	Progress(t.Context(), 1, 2, "no call at all")
}

// A raw result goes out byte for byte, in one line.
func TestSetRawResult(t *testing.T) {
	lines := progressOf(t, ``, func(ctx context.Context, _ func(time.Duration)) {
		require.True(t, SetRawResult(ctx, json.RawMessage(`{"content":[],"unknown":1e2, "x":"<"}`)))
	})
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"result":{"content":[],"unknown":1e2, "x":"<"}}`}, lines)
	lines = progressOf(t, ``, func(ctx context.Context, _ func(time.Duration)) {
		SetRawResult(ctx, json.RawMessage("{\n\"content\":\r\n[]}"))
	})
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`}, lines)

	require.False(t, SetRawResult(t.Context(), nil))
}
