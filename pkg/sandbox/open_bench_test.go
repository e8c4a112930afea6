package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// BenchmarkOpen opens and closes a file at several depths, by each resolver
// and, to compare, by the system's plain open.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for _, depth := range []int{1, 4, 16} {
		name := strings.Repeat("dir/", depth-1) + "file.txt"
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content"), 0o644); err != nil {
			b.Fatal(err)
		}
		for way, box := range map[string]func(sandbox.Config) *sandbox.Sandbox{"fastest": sandbox.New, "portable": sandbox.NewPortable} {
			fs, err := box(sandbox.Config{Roots: []string{dir}, Getenv: noEnv}).FS(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/depth=%d", way, depth), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f, err := fs.Open(name)
					if err != nil {
						b.Fatal(err)
					}
					f.Close()
				}
			})
		}
		b.Run(fmt.Sprintf("plain/depth=%d", depth), func(b *testing.B) {
			for b.Loop() {
				f, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}
