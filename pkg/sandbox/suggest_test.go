//go:build unix

package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestDidYouMean(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		for _, name := range []string{"README.md", "src/handler.go", "src/handlers.go", "src/Handler_test.go", "cafe\u0301.txt", "two\u00a0words.txt",
			"Screen\u202fshot.png", "x1", "x2", "x3", "x4", ".ssh/key", "deep/er/file.txt"} {
			tr.write(t, "root/"+name, "")
		}
		tr.write(t, "second/unique.txt", "")
		fs := open(t, box, tr.root, tr.second)
		for name, want := range map[string][]string{
			"readme.md": {"README.md"}, "REAMDE.md": {"README.md"}, "src/handlr.go": {"src/handler.go", "src/handlers.go"},
			"src/handler.og": {"src/handler.go", "src/handlers.go"}, "caf\u00e9.txt": {"cafe\u0301.txt"}, "two words.txt": {"two\u00a0words.txt"},
			"Screen shot.png": {`Screen` + "\u202f" + `shot.png`}, "x5": {"x1", "x2", "x3"}, "dep/er/file.txt": {"deep/er/file.txt"}, "dep/er/nothing": {"deep"},
			filepath.Join(tr.second, "uniqe.txt"): {filepath.ToSlash(tr.second) + "/unique.txt"}, "entirely-different": nil, ".shs": nil,
			"src/../readme.md": {"README.md"},
		} {
			_, err := fs.Open(name)
			requireCode(t, toolerr.NotFound, err)
			if want == nil {
				require.NotContains(t, err.Error(), "did you mean", name)
				continue
			}
			require.Contains(t, err.Error(), "did you mean "+strings.Join(want, ", ")+"?")
		}
		// Nothing outside is ever offered.
		for _, name := range []string{"../outsid/secret.txt", "../roo", filepath.Join(tr.base, "secon")} {
			_, err := fs.Open(name)
			requireCode(t, toolerr.OutsideRoot, err)
			require.NotContains(t, err.Error(), "mean")
		}
	})
}

// Long names that are nearly alike are the dear case of comparing.
func BenchmarkDidYouMean(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		name := strings.Repeat("n", 240) + strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	fs, err := sandbox.New(sandbox.Config{Roots: []string{dir}, Getenv: noEnv}).FS(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := fs.Open(strings.Repeat("n", 244)); !toolerr.Is(err, toolerr.NotFound) {
			b.Fatal(err)
		}
	}
}
