package mcpkit

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// Detecting the mode must not lose input, and must not depend on how the input
// is split.
func FuzzDetect(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n{}")
	f.Add("\xef\xbb\xbf\xef\xbb\xbf{\n\"text\": 1}")
	f.Add("garbage\n[{\"jsonrpc\":1}]")
	f.Fuzz(func(t *testing.T, in string) {
		var modes [2]inputMode
		for i, src := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			all, m := detectMode(context.Background(), src, true)
			text, err := io.ReadAll(all)
			require.NoError(t, err)
			require.Equal(t, strings.TrimPrefix(in, "\xef\xbb\xbf"), string(text))
			modes[i] = m
		}
		require.Equal(t, modes[0], modes[1])
	})
}
