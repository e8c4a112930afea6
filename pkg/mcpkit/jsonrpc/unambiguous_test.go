package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// FuzzUnambiguous compares with Canonical, for values without space around them.
func FuzzUnambiguous(f *testing.F) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, text := range []string{
		`{}`, `[]`, `"a\u00e9"`, `1.5e-3`, `null`, `{"a":1,"b":{"a":[1,{"a":2}]}}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
		`[{"b":{"c":1,"c":1}}]`, deep(90), deep(100), deep(101), deep(102), strings.Repeat(`{"a":`, 101) + `{}` + strings.Repeat("}", 101),
		`{"a":1}x`, `{"a":}`, `[1,]`, "\"\xff\"", ``, `{`, `tru`, `01`, `"\ud800"`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.TrimSpace(text) != text || len(text) > 1<<16 {
			t.Skip()
		}
		raw := json.RawMessage(text)
		_, want := jsonrpc.Canonical(nil, raw)
		// Canonical does not look into numbers and words by themselves.
		want = want && jsonrpc.Valid(raw) == nil
		require.Equal(t, want, jsonrpc.Unambiguous(raw), text)
	})
}
