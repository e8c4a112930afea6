package mcpkit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPackageComment(t *testing.T) {
	require.Equal(t, "Mcp-x does x.\n\n\tmcp-x DIR\n", packageComment("// Copyright\n\n// Mcp-x does x.\n//\n//\tmcp-x DIR\npackage main\n\n// other\nvar x int\n"))
	require.Equal(t, "A.\n", packageComment("//go:build unix\n\n//go:generate x\n// A.\r\npackage main\r\n"))
	require.Empty(t, packageComment("package main\n// no\n"))
	require.Empty(t, packageComment(""))
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		`{"params":{"arguments":{"path":"src/a.go"}}}`:                 `{"params":{"arguments":{"path":"src/a.go"}}}`,
		`{"result":{"content":[{"type":"text","text":"the file"}]}}`:   `{"result":{"content":[{"text":"(8 bytes)","type":"text"}]}}`,
		`{"_meta":{"progressToken":17,"authToken":"abc"}}`:             `{"_meta":{"authToken":"***","progressToken":17}}`,
		`{"password":12345,"max_tokens":5,"api_key":["a","b"]}`:        `{"api_key":["***","***"],"max_tokens":5,"password":"***"}`,
		`{"command":"curl -H 'Authorization: Bearer abcdefghijkl' x"}`: `{"command":"curl -H 'Authorization: Bearer ***' x"}`,
		`{"command":"AWS_SECRET_ACCESS_KEY=abc/def make"}`:             `{"command":"AWS_SECRET_ACCESS_KEY=*** make"}`,
		`{"u":"https://me:pw@host/x"}`:                                 `{"u":"https://***@host/x"}`,
		`{"k":"sk-` + strings.Repeat("x", 20) + `"}`:                   `{"k":"***"}`,
		`{"id":12345678901234567890}`:                                  `{"id":12345678901234567890}`,
		`nonsense`:                                                     `(8 bytes that are not JSON)`,
	} {
		require.Equal(t, want, redactMessage([]byte(in)))
	}
	long := redactMessage([]byte(`{"query":"` + strings.Repeat("é2345678", 100) + `"}`))
	require.Contains(t, long, "… (")
	require.Less(t, len(long), 250)
}
