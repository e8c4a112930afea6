package jsonrpc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzAppendString compares with encoding/json, which must write the same
// bytes.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a\nb\tc\r\b\f\v", `"quoted" \ back`, "<a href='x'>&</a>", "\x00\x1f\x7f", "é ß 漢字 🎉",
		"\xff\xfe", "cut \xe6\xbc", "\u2028 \u2029 \ufffd \ufeff", strings.Repeat("long ", 1000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := Marshal(s)
		require.NoError(t, err)
		require.Equal(t, "dst:"+string(want), string(AppendString([]byte("dst:"), s)))
	})
}

func BenchmarkAppendString(b *testing.B) {
	text := strings.Repeat("src/net/http/transport_test.go\n", 20_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		AppendString(nil, text)
	}
}
