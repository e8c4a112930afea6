//go:build unix

package pathname_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

func TestEscapeName(t *testing.T) {
	for in, want := range map[string]string{
		"plain.txt": "plain.txt", "sp ace": "sp ace", "日本語": "日本語", "naïve": "naïve", "🙂.md": "🙂.md",
		"a\nb": `a\nb`, "a\tb": `a\tb`, "\x1b[31mred": `\x1b[31mred`, "\x1b]0;title\a": `\x1b]0;title\a`, "del\x7f": `del\x7f`,
		"c1\u009b31m": `c1\u009b31m`, "bidi\u202egnp.exe": `bidi\u202egnp.exe`, "iso\u2066x\u2069": `iso\u2066x\u2069`,
		"zero\u200bwidth": `zero\u200bwidth`, "bom\ufeff": `bom\ufeff`, "tag\U000e0041": `tag\U000e0041`, "soft\u00adhyphen": `soft\u00adhyphen`,
		"latin\xe9": `latin\xe9`, "\xff\xfe": `\xff\xfe`, "line\u2028sep": `line\u2028sep`, "nbsp\u00a0": "nbsp\u00a0",
		// A backslash stays unless it could be taken for an escape.
		`back\slash`: `back\slash`, `c:\dir`: `c:\dir`, `a\nb`: `a\\nb`, `a\\b`: `a\\\\b`, "a\\b\n": `a\\b\n`, `x\x1b`: `x\\x1b`, `x\x41`: `x\x41`,
	} {
		require.Equal(t, want, pathname.Escape(in))
	}
	for _, in := range []string{"plain", `c:\dir`, `\x2e\x2e`, `\x2f`, `\u002f`, `a\0`, `\000`, `\101`, `a\`, `\x`, `\ud800`, `\q`, `\"`, `\x00`} {
		_, ok := pathname.Unescape(in)
		require.False(t, ok, in)
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"a\nb", `a\nb`, `a\\nb`, "\xff", `\xff`, "\u202e", `\`, "\U000e0041\\", "é\x80", `\u00e9`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		shown := pathname.Escape(name)
		require.True(t, utf8.ValidString(shown))
		require.NotContains(t, shown, "\n")
		require.NotContains(t, shown, "\x1b")
		if strings.Contains(name, "\x00") {
			return // shown in errors, but no file's name: never accepted back
		}
		back, ok := pathname.Unescape(shown)
		if shown == name {
			require.False(t, ok, "%q shows as itself but reads as %q", name, back)
			return
		}
		require.True(t, ok)
		require.Equal(t, name, back)
	})
}
