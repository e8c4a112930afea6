package textfile_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestDecodedOffsets: every character's bytes are found, across several marks,
// and no position inside a character is accepted.
func TestDecodedOffsets(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, c := range []struct {
		encoding textfile.Encoding
		text     string
	}{
		{textfile.UTF16LE, japanese + "𝄞 clef\n"}, {textfile.UTF16BE, gbDecoder + "😀\n"}, {textfile.Latin1, latin},
		{textfile.Windows1252, french}, {textfile.ShiftJIS, japanese + "ｶﾀｶﾅ\n"}, {textfile.GBK, gbDecoder}, {textfile.GB18030, gbDecoder + "😀\n"},
		{"euc-jp", japanese}, {"big5", "中文\n"},
	} {
		text := strings.Repeat(c.text, 400)
		raw := encode(t, c.encoding, text)
		d := decoded(t, c.encoding, raw)
		require.Equal(t, text, string(d.Text), c.encoding)
		at, cursor := 0, d.RawOffsets()
		for i, r := range text {
			if i > 3*4096 {
				break
			}
			got, ok := d.RawOffset(i)
			require.True(t, ok, "%s at %d", c.encoding, i)
			require.Equal(t, at, got, "%s at %d", c.encoding, i)
			got, ok = cursor(i)
			require.True(t, ok && got == at, "%s at %d", c.encoding, i)
			at += len(encode(t, c.encoding, string(r)))
			for inside := i + 1; inside < i+utf8.RuneLen(r); inside++ {
				_, ok := d.RawOffset(inside)
				require.False(t, ok, "%s inside %q", c.encoding, r)
			}
		}
		end, ok := d.RawOffset(len(d.Text))
		require.True(t, ok)
		require.Equal(t, len(raw), end)
	}
}

func TestDecodedDamage(t *testing.T) {
	// A lead byte without a second byte, an odd byte at the end: both are
	// replaced, and later characters keep their offsets.
	d := decoded(t, textfile.ShiftJIS, []byte("a\x81\nb"))
	require.Equal(t, textfile.ShiftJIS.Decode([]byte("a\x81\nb")), string(d.Text))
	at, ok := d.RawOffset(strings.IndexByte(string(d.Text), 'b'))
	require.True(t, ok)
	require.Equal(t, 3, at)

	d = decoded(t, textfile.UTF16LE, []byte("a\x00b\x00c"))
	require.Equal(t, "ab\uFFFD", string(d.Text))
	require.Empty(t, decoded(t, textfile.UTF16LE, nil).Text)
}

func decoded(t *testing.T, e textfile.Encoding, raw []byte) *textfile.Decoded {
	t.Helper()
	d, err := e.DecodeMapped(t.Context(), raw)
	require.NoError(t, err)
	return d
}

// TestDecodedIsCancelled: decoding a large file stops when the call is
// cancelled.
func TestDecodedIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := textfile.UTF16LE.DecodeMapped(ctx, make([]byte, 1<<20))
	require.ErrorIs(t, err, context.Canceled)
}
