package changes_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// Another process replaces a directory by a link while changes are applied: no
// file is written at the target of the link.
func TestDirectoryIsReplacedByALink(t *testing.T) {
	for name, script := range map[string]string{
		"created":     `echo planted > d/post-commit`,
		"modified":    `echo planted > d/x`,
		"deleted":     `rm d/x`,
		"directory":   `mkdir -p d/new/sub; echo planted > d/new/sub/post-commit`,
		"mode":        `chmod 700 d/sub`,
		"link":        `ln -s /nowhere d/post-commit`,
		"replaced":    `rm -r d/sub; echo planted > d/sub`,
		"fifo":        `mkfifo d/post-commit`,
		"closed":      `chmod 500 d; chmod 700 d; echo planted > d/post-commit; chmod 500 d`,
		"whole":       `rm -r d; mkdir d; echo planted > d/post-commit`,
		"beneath two": `echo planted > d/sub/y`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.RunOutside(`mkdir -p d/sub .git/hooks/sub; for d in d .git/hooks; do echo x > $d/x; echo y > $d/sub/y; done; chmod 755 d d/sub .git/hooks .git/hooks/sub`)
			set, err := b.store.Create([]string{b.Root})
			require.NoError(t, err)
			b.run(set, script)
			hooks := filepath.Join(b.Root, ".git/hooks")
			before := sandboxtest.DescribeTree(t, hooks)
			swapped := false
			_, err = set.Apply(nil, func(string) string {
				if !swapped { // after the check for conflicts
					swapped = true
					require.NoError(t, os.Rename(filepath.Join(b.Root, "d"), filepath.Join(b.Root, "aside")))
					require.NoError(t, os.Symlink(".git/hooks", filepath.Join(b.Root, "d")))
				}
				return ""
			})
			require.True(t, swapped)
			require.Error(t, err)
			require.Equal(t, before, sandboxtest.DescribeTree(t, hooks))
			target, err := os.Readlink(filepath.Join(b.Root, "d"))
			require.NoError(t, err, "the link of the other process stays")
			require.Equal(t, ".git/hooks", target)
		})
	}
}

// The same at random moments of an apply. CHANGES_SWAPS is the number of
// tries.
func TestDirectoryIsReplacedByALinkAtRandom(t *testing.T) {
	b := newBench(t)
	hooks, dir, link := filepath.Join(b.Root, ".git/hooks"), filepath.Join(b.Root, "d"), filepath.Join(b.Root, "link")
	applied := 0
	for range sandboxtest.Seeds(t, "CHANGES_SWAPS", 20) {
		b.RemoveFiles()
		b.RunOutside(`mkdir -p d .git/hooks; for d in d .git/hooks; do for i in {1..20}; do echo x > $d/f$i; done; done; ln -s .git/hooks link`)
		before := sandboxtest.DescribeTree(t, hooks)
		set, err := b.store.Create([]string{b.Root})
		require.NoError(t, err)
		b.run(set, `rm d/f{1..5}; for i in f{6..15} new{1..20}; do echo planted > d/$i; done; mkdir d/sub; echo planted > d/sub/f; chmod 700 d/f{16..20}`)
		var stop atomic.Bool
		var swaps sync.WaitGroup
		swaps.Go(func() {
			for !stop.Load() {
				unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) //nolint:errcheck // tried again
			}
		})
		for range 20 {
			if _, applyErr := set.Apply(nil, nil); applyErr == nil {
				applied++
				break
			}
		}
		stop.Store(true)
		swaps.Wait()
		require.Equal(t, before, sandboxtest.DescribeTree(t, hooks))
		if len(b.store.List([]string{b.Root})) > 0 {
			require.NoError(t, set.Discard())
		}
	}
	t.Logf("%d sets were applied whole", applied)
}
