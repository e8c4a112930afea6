//go:build linux

package walk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// wide returns a directory of many files and of sub-directories with files,
// some of them ignored.
func wide() files {
	f := files{"big/.ignore": "n*7\n"}
	for i := range 3000 {
		f[fmt.Sprintf("big/n%d", i)] = ""
		if i%100 == 0 {
			f[fmt.Sprintf("big/s%d/in", i)] = ""
			f[fmt.Sprintf("big/s%d/deep/in", i)] = ""
		}
	}
	return f
}

// All workers visit a cached directory together, and each entry once.
func TestWorkersShareADirectory(t *testing.T) {
	// On one processor, workers share a directory only when the system
	// interrupts one.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	root := t.TempDir()
	wide().write(t, root)
	time.Sleep(grain)
	fs := openRoot(t, root)
	opts := walk.Options{Workers: 4, ShowIgnored: true, Cache: walk.NewCache(1 << 20).WithGrain(grain), AnyOrder: true}
	want, first := collect(t, start(t, root, ".", opts), anything)
	collect(t, start(t, root, ".", opts), anything) // fills the cache
	shared := 0
	until := time.Now().Add(mcpkittest.MaxWait) // on a busy machine one worker may do everything for a while
	for round := 0; round < 8 || shared == 0 && time.Now().Before(until); round++ {
		var mu sync.Mutex
		helped := map[int]int{}
		node := startIn(t, fs, ".", opts)
		got, report := collect(t, node, anything)
		node.Close()
		require.Equal(t, want, got)
		require.Equal(t, first, report)
		node = startIn(t, fs, ".", opts)
		_, err := walk.Walk(t.Context(), node, func(worker int, e *walk.Entry) error {
			if e.Depth == 2 {
				mu.Lock()
				defer mu.Unlock()
				helped[worker]++
			}
			return nil
		})
		node.Close()
		require.NoError(t, err)
		if len(helped) > 1 {
			shared++
		}
	}
	require.NotZero(t, shared, "one worker visited all of the directory, each time")
}

// A walk that ends in a directory shared by workers, for any reason, is
// reported as partial, has no cursor and leaves nothing open.
func TestASharedDirectoryIsLeft(t *testing.T) {
	root := t.TempDir()
	wide().write(t, root)
	time.Sleep(grain)
	opts := walk.Options{Workers: 4, Cache: walk.NewCache(1 << 20).WithGrain(grain), AnyOrder: true}
	for range 2 {
		collect(t, start(t, root, ".", opts), anything)
	}
	box := openRoot(t, root)
	held, err := walk.Start(box, ".", opts) // keeps the root open
	require.NoError(t, err)
	defer held.Close()
	before := descriptors(t)
	for _, reason := range []error{fs.SkipAll, errors.New("of the visit"), context.Canceled} {
		for stop := 1; stop < 2700; stop += 301 {
			ctx, cancel := context.WithCancel(t.Context())
			node, err := walk.Start(box, ".", opts)
			require.NoError(t, err)
			var mu sync.Mutex
			n := 0
			report, err := walk.Walk(ctx, node, func(int, *walk.Entry) error {
				mu.Lock()
				defer mu.Unlock()
				if n++; n < stop {
					return nil
				}
				if errors.Is(reason, context.Canceled) {
					cancel()
					return nil
				}
				return reason
			})
			cancel()
			require.NoError(t, node.Close())
			if errors.Is(reason, context.Canceled) {
				require.Equal(t, report.Partial, err != nil, "%d: %v", stop, err)
				continue
			}
			require.True(t, report.Partial, "%d: %v", stop, err)
			require.Equal(t, !errors.Is(reason, fs.SkipAll), err != nil)
		}
	}
	require.LessOrEqual(t, descriptors(t), before+1)
}
