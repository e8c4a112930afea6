//go:build linux

package writeguard

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkInventory measures the search of an unchanged root.
func BenchmarkInventory(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			root := b.TempDir()
			for i := range n {
				if err := os.MkdirAll(filepath.Join(root, fmt.Sprintf("a%d/b%d/c%d", i%20, i%400/20, i)), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			v := inventory{root: root}
			v.scan(nil, nil, nil, nil)
			var age func(*dirCache)
			age = func(at *dirCache) { // as if it had been read later
				at.readAt = at.readAt.Add(1 << 40)
				for _, below := range at.subdirs {
					age(below)
				}
			}
			age(v.topDir)
			for b.Loop() {
				if !v.scan(nil, nil, nil, nil).complete {
					b.Fatal("not whole")
				}
			}
		})
	}
}
