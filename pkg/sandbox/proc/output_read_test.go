package proc_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestCursorsLoseAndRepeatNothing: output is written and read concurrently, in
// pieces of any size. Within the bound of the file each byte is read exactly
// once. Beyond it, the bytes not kept are counted, and those read are the
// bytes written at that offset.
func TestCursorsLoseAndRepeatNothing(t *testing.T) {
	rounds := 60
	if long {
		rounds = 2000
	}
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		text := make([]byte, 1+random.IntN(900<<10))
		for i := range text {
			text[i] = byte(random.Uint32() >> uint(seed%8)) // includes NULs and incomplete characters
		}
		bound, dir := int64(1<<30), t.TempDir()
		switch seed % 3 {
		case 1:
			bound = 1 + int64(random.IntN(len(text)))
		case 2:
			dir = "" // no file
		}
		out := proc.NewOutput(dir, bound)
		upTo := func(n int) int { return 1 + random.IntN(1+random.IntN(n)) }
		written, cursor, lost := 0, int64(0), int64(0)
		buf := make([]byte, 300<<10)
		read := func() bool {
			n, skipped, err := out.Read(cursor, buf[:upTo(len(buf))])
			require.NoError(t, err, seed)
			lost += skipped
			cursor += skipped
			require.LessOrEqual(t, cursor+int64(n), int64(written), seed)
			require.True(t, bytes.Equal(text[cursor:cursor+int64(n)], buf[:n]), "seed %d at %d", seed, cursor)
			cursor += int64(n)
			return n > 0
		}
		for written < len(text) {
			for range random.IntN(3) {
				read()
			}
			n := min(upTo(200<<10), len(text)-written)
			out.Append(text[written : written+n])
			written += n
		}
		out.SetComplete()
		for read() {
		}
		require.EqualValues(t, len(text), cursor, seed)
		require.EqualValues(t, len(text), out.Size())
		if seed%3 == 0 {
			require.Zero(t, lost, seed)
			name, size, err := out.Spill()
			require.NoError(t, err)
			if name != "" {
				require.EqualValues(t, len(text), size)
			}
		}
		whole := int64(len(text)) <= 256<<10 || seed%3 == 1 && int64(len(text)) <= bound+128<<10
		if whole {
			require.Zero(t, lost, seed)
		}
		require.NoError(t, out.Close())
	}
}
