package mcpkit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxTestWait bounds a test's wait for an expected event.
const maxTestWait = time.Minute

// modern returns the _meta of a modern request.
func modern(client string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"` + client + `","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
}

// text returns the text of a tool's answer.
func text(t *testing.T, m jsonrpc.Message) string {
	t.Helper()
	require.Nil(t, m.Error, "%s", m.Error)
	var res struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal(m.Result, &res))
	var b strings.Builder
	for _, c := range res.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// errorCode returns the code of an error answer.
func errorCode(t *testing.T, m jsonrpc.Message) int {
	t.Helper()
	require.NotNil(t, m.Error, "%s", m.Result)
	var e struct{ Code int }
	require.NoError(t, json.Unmarshal(m.Error, &e))
	return e.Code
}
