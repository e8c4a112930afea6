package textfile_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// inPieces has its content in memory, contiguous only up to cut.
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

// Content in memory is not copied, and the scan gives the same result.
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

// Data kept by one scan makes the next scan cheaper and does not change its
// result.
func TestScanOfWhatBeginsAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	ctx := context.Background()
	units := []string{"line é\r\n", "日本語\n", "l\x00\n\x00", "caf\xe9 au lait\n", "a\r", "x\n"}
	if mcpkittest.RaceEnabled {
		units = units[:1]
	}
	for _, unit := range units {
		data := bytes.Repeat([]byte(unit), 4*textfile.ChunkSize/len(unit)+5)
		before, err := textfile.Scan(ctx, bytes.NewReader(data), int64(len(data)), textfile.Options{KeepFacts: true})
		require.NoError(t, err)
		for _, new := range []string{"", "\n", "é", "\xff", "\x00\x00", "\r\n\r"} {
			for _, at := range []int{0, 1, textfile.ChunkSize, textfile.ChunkSize + 1, 3 * textfile.ChunkSize, rng.IntN(len(data)), len(data)} {
				after := append(append(bytes.Clone(data[:at]), new...), data[at:]...)
				want, err := textfile.Scan(ctx, bytes.NewReader(after), int64(len(after)), textfile.Options{})
				require.NoError(t, err)
				got, err := textfile.Scan(ctx, bytes.NewReader(after), int64(len(after)), textfile.Options{Previous: before, SamePrefix: int64(at)})
				require.NoError(t, err)
				require.Equal(t, want, got, "%q with %q at %d", unit, new, at)
			}
		}
	}
}

// The first Same bytes are not scanned again: their facts are reused, and only
// the bytes after them are scanned.
func TestScanIsSpared(t *testing.T) {
	data := bytes.Repeat([]byte("line\n"), textfile.ChunkSize)
	before, err := textfile.Scan(context.Background(), bytes.NewReader(data), int64(len(data)), textfile.Options{KeepFacts: true})
	require.NoError(t, err)
	other := bytes.ReplaceAll(data, []byte("i"), []byte("\n"))
	got, err := textfile.Scan(context.Background(), bytes.NewReader(other), int64(len(data)), textfile.Options{Previous: before, SamePrefix: 2 * textfile.ChunkSize})
	require.NoError(t, err)
	all, err := textfile.Scan(context.Background(), bytes.NewReader(other), int64(len(data)), textfile.Options{})
	require.NoError(t, err)
	require.Less(t, got.Lines, all.Lines)
}
