package fileedit_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// BenchmarkLine changes one line in the middle of a large file, and for
// comparison copies the file with cp and a sync, which costs the disk the same.
func BenchmarkLine(b *testing.B) {
	const size = 96 << 20
	root, err := filepath.EvalSymlinks(b.TempDir())
	require.NoError(b, err)
	name := filepath.Join(root, "large.txt")
	line := []byte("a line of a large file, as there are many of them\n")
	require.NoError(b, os.WriteFile(name, bytes.Repeat(line, size/len(line)), 0o644))
	fs, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(context.Background())
	require.NoError(b, err)
	r := &fileedit.Rewriter{Store: state.New(state.Config{Dir: b.TempDir()}), Tool: "bench"}
	b.Run("rewrite", func(b *testing.B) {
		for i := range b.N {
			_, err := r.Rewrite(context.Background(), fs, "large.txt", fileedit.Options{}, func(b *fileedit.Before) (*fileedit.After, error) {
				at := len(line) * 1_000_000
				return fileedit.Splice(b.Content, []textdiff.Change{{Start: at, End: at + 1, New: string(rune('a' + i%26))}}), nil
			})
			require.NoError(b, err)
		}
	})
	b.Run("cp", func(b *testing.B) {
		for range b.N {
			require.NoError(b, exec.Command("cp", name, name+".copy").Run())
			copied, err := os.OpenFile(name+".copy", os.O_RDWR, 0)
			require.NoError(b, err)
			require.NoError(b, copied.Sync())
			require.NoError(b, copied.Close())
		}
	})
}
