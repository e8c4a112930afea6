package textfile

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// GuessUTF16 agrees with Detect on text in UTF-16, and returns "" for binary
// data and ASCII.
func TestGuessWide(t *testing.T) {
	for _, text := range []string{"plain words\r\nand more\n", "これは日本語です。 func main() {}\n", "это русский текст\n", "über 12 €\n", strings.Repeat("中文 x ", 900)} {
		for _, e := range []Encoding{UTF16LE, UTF16BE} {
			raw, err := e.Encode(text)
			require.NoError(t, err)
			require.Equal(t, Detect(raw).Encoding, GuessUTF16(raw), "%q %s", text, e)
			require.Equal(t, e, GuessUTF16(raw), text)
		}
	}
	r := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 2, 600, 5000, 70_000} {
		raw := make([]byte, size)
		r.Read(raw)
		require.Empty(t, GuessUTF16(raw))
	}
	require.Empty(t, GuessUTF16([]byte("plain ASCII text\n")))
	require.Empty(t, GuessUTF16([]byte("\x00a_bx\n")))
	require.Empty(t, GuessUTF16([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00")))
}
