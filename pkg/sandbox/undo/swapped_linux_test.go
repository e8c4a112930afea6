package undo_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// Another process replaces a directory and a file by links while a command is
// undone: the targets of the links stay unchanged. UNDO_SWAPS is the number of
// tries.
func TestReplacedByALinkAtRandom(t *testing.T) {
	b := newBench(t, proc.L2)
	undone := 0
	for range sandboxtest.Seeds(t, "UNDO_SWAPS", 8) {
		b.RemoveFiles()
		b.RunOutside(`mkdir -p .git/hooks d; for d in d .git/hooks; do for i in {1..20}; do echo x > $d/f$i; chmod 644 $d/f$i; done; done
echo x > f; chmod 755 f; ln -s .git/hooks/f1 filelink; ln -s .git/hooks dirlink`)
		hooks := filepath.Join(b.Root, ".git/hooks")
		before := sandboxtest.DescribeTree(t, hooks)
		id, _ := b.run(`rm d/f{1..5}; for i in f{6..10} new{1..5}; do echo y > d/$i; done; chmod 700 d/f{11..20}; mkdir d/sub; for i in {1..20}; do chmod 600 f; echo y > f; mv f g; mv g f; done; chmod 600 f`)
		require.NotEmpty(t, id)
		var stop atomic.Bool
		var swaps sync.WaitGroup
		for one, other := range map[string]string{"d": "dirlink", "f": "filelink"} {
			swaps.Go(func() {
				for !stop.Load() {
					unix.Renameat2(unix.AT_FDCWD, filepath.Join(b.Root, one), unix.AT_FDCWD, filepath.Join(b.Root, other), unix.RENAME_EXCHANGE) //nolint:errcheck // tried again
				}
			})
		}
		for range 50 {
			record, err := b.store.Open(id)
			if err == nil {
				_, err = record.Undo(nil)
			}
			if err == nil {
				undone++
				break
			}
		}
		stop.Store(true)
		swaps.Wait()
		require.Equal(t, before, sandboxtest.DescribeTree(t, hooks))
		os.RemoveAll(filepath.Join(b.dir, id)) //nolint:errcheck // an undone record is already gone
	}
	t.Logf("%d commands were undone", undone)
}
