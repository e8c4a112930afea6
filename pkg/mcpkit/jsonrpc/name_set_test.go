package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// The top-level names of a result are known without another scan; nested names
// do not count.
func TestNamesOfAResult(t *testing.T) {
	of := func(line string) jsonrpc.NameSet {
		m, err := jsonrpc.Split([]byte(line))
		require.NoError(t, err)
		return m.Names
	}
	names := []string{"content", "isError", "structuredContent", "resultType", "_meta"}
	for _, has := range names {
		for _, spelt := range []string{has, `\u00` + hex(has[0]) + has[1:]} {
			got := of(`{"jsonrpc":"2.0","id":1,"result":{"` + spelt + `":{"isError":1,"resultType":2,"content":[]}}}`)
			for _, name := range names {
				require.Equal(t, name == has, got.MayHave(name), "%s in %s", name, spelt)
			}
		}
	}
	require.False(t, of(`{"result":{},"jsonrpc":"2.0","id":1}`).MayHave("isError"))
	require.True(t, of(`{"result":[{}],"jsonrpc":"2.0","id":1}`).MayHave("isError"), "not looked at")
	require.True(t, of(`{"jsonrpc":"2.0","id":1,"method":"x","params":{}}`).MayHave("isError"))
	require.True(t, jsonrpc.NameSet(0).MayHave("isError"))

	for result, asks := range map[string]bool{
		`{}`: false, `{"resultType":"complete"}`: false, `{"content":[{"resultType":"input_required"}], "resultType" : "complete" }`: false,
		`{"resultType":"input_required"}`: true, `{"result\u0054ype":"input_required"}`: true, `{"resultType":"compl\u0065te"}`: true,
		`{"resultType":"complete","resultType":"input_required"}`: true, `[]`: true,
	} {
		require.Equal(t, asks, of(`{"jsonrpc":"2.0","id":1,"result":`+result+`}`).MayBeIncomplete(), result)
	}
	require.True(t, jsonrpc.NameSet(0).MayBeIncomplete())

	for _, bad := range []string{`{"a":}`, `{"a"}`, `{`, `{"a":1,}`, strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001)} {
		_, err := jsonrpc.Split([]byte(`{"jsonrpc":"2.0","id":1,"result":` + bad + `}`))
		require.Error(t, err, bad)
	}
}

func hex(c byte) string { return string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]) }

func TestItems(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{`[]`, nil}, {" [ ] ", nil}, {`[1]`, []string{"1"}},
		{` [ {"a":[1,2]} , "x,]" ,null,[ ] ] `, []string{`{"a":[1,2]}`, `"x,]"`, "null", "[ ]"}},
	} {
		items, err := jsonrpc.Items([]byte(c.in))
		require.NoError(t, err, c.in)
		var got []string
		for _, item := range items {
			got = append(got, string(item))
		}
		require.Equal(t, c.want, got)
	}
	for _, bad := range []string{``, ` `, `{}`, `[`, `[1,]`, `[1 2]`, `[1]x`, "[\"\xff\"]"} {
		_, err := jsonrpc.Items([]byte(bad))
		require.Error(t, err, bad)
	}
}
