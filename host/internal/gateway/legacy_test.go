package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// To clients of the legacy versions structuredContent is an object, to those of the
// modern one anything.
func TestAModernServersResultIsReadByLegacyClients(t *testing.T) {
	for sent, want := range map[string]string{
		`{"resultType":"complete","content":[],"structuredContent":[1, "\u00e9"]}`: `{"resultType":"complete","content":[{"type":"text","text":"[1, \"\\u00e9\"]"}]}`,
		`{"structuredContent":7,"resultType":"complete"}`:                          `{"resultType":"complete","content":[{"type":"text","text":"7"}]}`,
		`{"content":[{"type":"text"}],"structuredContent":null,"resultType":"x"}`:  `{"content":[{"type":"text"}],"resultType":"x"}`,
		`{"content":[], "structuredContent":{"a":1},"resultType":"complete"}`:      "",
		`{"content":[], "structuredContent":[1]}`:                                  "", // as a legacy client would have had it
	} {
		d := serve(t, open(t, tools{"t": raw(sent)}))
		if want == "" {
			want = sent
		}
		_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+want+`}`, strings.TrimSpace(body))
		_, body, _ = d.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",`+modernMeta+`}}`,
			modernHeaders("tools/call", "t")...)
		require.Contains(t, body, strings.TrimSuffix(sent, "}"))
	}
}
