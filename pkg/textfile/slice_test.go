package textfile_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/textfile"
)

// inPieces has its content in memory, and in one piece only up to cut.
type inPieces struct {
	*bytes.Reader
	data []byte
	cut  int64
}

func (p inPieces) Slice(off int64, n int) []byte {
	if off < p.cut && off+int64(n) > p.cut {
		return nil
	}
	return p.data[off:][:n:n]
}

// What is in memory is not copied, and scanned all the same.
func TestScanInMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, unit := range []string{"line é\r\n", "日本語\n", "a\x00\n\x00", "caf\xe9 au lait\n", "x\xe2\x82\n"} {
		for _, size := range []int{0, 10, textfile.ChunkSize - 1, textfile.ChunkSize + 1, 5*textfile.ChunkSize + 77} {
			data := bytes.Repeat([]byte(unit), size/len(unit)+1)[:size]
			want, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(size), textfile.Options{})
			require.NoError(t, err)
			for range 3 {
				got, err := textfile.Scan(context.Background(), inPieces{bytes.NewReader(data), data, rng.Int64N(int64(size) + 1)}, int64(size), textfile.Options{})
				require.NoError(t, err)
				require.Equal(t, want, got, "%q %d", unit, size)
			}
		}
	}
}
