package mcpkit_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

// The user is asked if the client supports it; only an explicit yes agrees.
func TestConfirm(t *testing.T) {
	start := func() *wire {
		h := newServer()
		tool(h, "push", func(ctx context.Context, _ mcp.CallToolRequest) string {
			agreed, asked, err := mcpkit.Confirm(ctx, "Push to main?")
			return fmt.Sprintf("%t %t %v", agreed, asked, err != nil)
		})
		return serve(t, h, mcpkit.ServeOptions{})
	}
	w := start()
	w.handshake(`{"elicitation":{}}`)
	id := 0
	for answer, want := range map[string]string{
		`"result":{"action":"accept","content":{"agree":true}}`:  "true true false",
		`"result":{"action":"accept","content":{"agree":false}}`: "false true false",
		`"result":{"action":"accept","content":{}}`:              "false true false",
		`"result":{"action":"decline"}`:                          "false true false",
		`"result":{"action":"cancel"}`:                           "false true false",
		`"error":{"code":-32601,"message":"no"}`:                 "false true true",
	} {
		id++
		w.call(id, "push", `{}`)
		ask := w.next()
		require.Equal(t, "elicitation/create", ask.Method)
		require.Contains(t, string(ask.Params), "Push to main?")
		w.send(`{"jsonrpc":"2.0","id":%s,%s}`, ask.ID, answer)
		require.Equal(t, want, text(t, w.answer(id)), answer)
	}
	w.send(`{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{"name":"push",%s}}`, modern("new"))
	require.Equal(t, "false false false", text(t, w.answer("m")))

	w = start()
	w.handshake(`{"roots":{}}`)
	w.call(1, "push", `{}`)
	require.Equal(t, "false false false", text(t, w.answer(1)), "a client that cannot is not asked")
}

// Alternative replaces serving.
func TestInstead(t *testing.T) {
	r := &run{}
	cmd := newSay(t, r)
	cmd.Alternative = func(_ context.Context, stdout io.Writer) (int, bool) {
		fmt.Fprintln(stdout, "all is well")
		return 7, r.read
	}
	var out bytes.Buffer
	require.Equal(t, 7, cmd.Run(t.Context(), []string{"--fast"}, strings.NewReader(""), &out, io.Discard))
	require.Equal(t, "all is well\n", out.String())
}

// The definition marks a tool whose calls must not wait behind others.
func TestControl(t *testing.T) {
	control, err := mcpkit.NewTool(mcpkit.Def{Name: "kill", Control: true}, nothing[page])
	require.NoError(t, err)
	require.Contains(t, string(control.Definition()), `"control":true`)
}
