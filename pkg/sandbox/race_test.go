//go:build unix

package sandbox_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// secretMark is in a secret inside the root, which no race may show either.
const secretMark = "SECRET-b81c04"

// raceTime returns the time of each of this package's three races, which run for
// both resolvers at the same time. If TOOLROOM_SOAK is set, as in CI, the three
// last 10 s together, or the duration that it holds.
func raceTime() time.Duration {
	soak := os.Getenv("TOOLROOM_SOAK")
	if soak == "" {
		return 250 * time.Millisecond
	}
	total, err := time.ParseDuration(soak)
	if err != nil {
		total = 10 * time.Second
	}
	return total / 3
}

// race waits for raceTime, and on a machine with much else to do, but not for
// ever, until what is raced has happened.
func race(happened func() bool) {
	time.Sleep(raceTime())
	for end := time.Now().Add(time.Minute); !happened() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

// bothAtOnce is eachWay with both resolvers, and the other races, at the same time.
func bothAtOnce(t *testing.T, test func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox)) {
	t.Helper()
	t.Parallel()
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		t.Parallel()
		test(t, box)
	})
}

// swap makes name lead to NAME.one and NAME.two in turn until stop, and counts the
// renames.
func swap(name string, stop <-chan struct{}, count *atomic.Int64) {
	one, two := name+".one", name+".two"
	for {
		select {
		case <-stop:
			return
		default:
		}
		// A name that is missing for a moment is part of the game.
		for _, step := range [][2]string{{one, name}, {name, one}, {two, name}, {name, two}} {
			if os.Rename(step[0], step[1]) == nil {
				count.Add(1)
			}
		}
	}
}

// TestSwapRace reads, lists and looks through names that are swapped between
// something inside and a way out all the while: 0 escapes, 0 secrets, and
// nothing blocks.
func TestSwapRace(t *testing.T) {
	bothAtOnce(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTreeIn(t, memoryDir(t))
		tr.write(t, "root/in/f", "inside")
		tr.write(t, "root/.ssh/f", secretMark)
		tr.write(t, "outside/f", outsideMark)
		names := map[string][2]string{"dir": {"in", "../outside"}, "store": {"in", ".ssh"}, "file": {"in/f", "../outside/f"}, "abs": {"in", tr.base + "/outside"}}
		var swapped []string
		for name, targets := range names {
			path := filepath.Join(tr.root, name)
			if name == "file" {
				tr.write(t, "root/file.one", "inside")
			} else {
				tr.write(t, "root/"+name+".one/f", "inside")
			}
			require.NoError(t, os.Symlink(targets[1], path+".two"))
			swapped = append(swapped, path)
		}
		tr.write(t, "root/pipe.one", "inside")
		require.NoError(t, syscall.Mkfifo(filepath.Join(tr.root, "pipe.two"), 0o644))
		swapped = append(swapped, filepath.Join(tr.root, "pipe"))

		fs := open(t, box, tr.root)
		var swaps, reads, outside, secrets, escapes atomic.Int64
		stop := make(chan struct{})
		var group sync.WaitGroup
		for _, name := range swapped {
			group.Go(func() { swap(name, stop, &swaps) })
		}
		check := func(content []byte, err error) {
			switch {
			case toolerr.Is(err, toolerr.OutsideRoot):
				outside.Add(1)
			case toolerr.Is(err, toolerr.DeniedPath):
				secrets.Add(1)
			case err != nil: // of a name that was missing, or of the pipe
			case strings.Contains(string(content), outsideMark), strings.Contains(string(content), secretMark):
				escapes.Add(1)
			default:
				reads.Add(1)
			}
		}
		for range 2 {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					for _, name := range []string{"dir/f", "store/f", "abs/f", "dir/../store/f", "file", "pipe"} {
						check(readAll(fs.Open(name)))
					}
					for _, name := range []string{"dir", "store", "abs"} {
						check(readThrough(fs, name))
					}
				}
			})
		}
		race(func() bool {
			return swaps.Load() > 0 && reads.Load() > 0 && outside.Load() > 0 && secrets.Load() > 0
		})
		close(stop)
		group.Wait()
		t.Logf("%d renames, %d reads, %d refusals outside, %d of secrets, %d escapes", swaps.Load(), reads.Load(), outside.Load(), secrets.Load(), escapes.Load())
		require.Zero(t, escapes.Load())
		require.NotZero(t, swaps.Load())
		require.NotZero(t, reads.Load(), "of files inside")
		require.NotZero(t, outside.Load(), "refusals of links that lead outside")
		require.NotZero(t, secrets.Load(), "refusals of links to secrets")
	})
}

func readAll(f *sandbox.File, err error) ([]byte, error) {
	if err != nil {
		if code := toolerr.CodeOf(err); code == toolerr.ExecutionError || code == toolerr.Internal {
			panic(err) // no race excuses an error that says nothing
		}
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// readThrough opens a directory and the file f in it.
func readThrough(fs *sandbox.FS, name string) ([]byte, error) {
	d, err := fs.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, _, err := d.Open("f")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Directories that are renamed while .. is resolved must not become the way
// up: .. goes by the name beneath the root.
func TestDotDotAfterRename(t *testing.T) {
	bothAtOnce(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTreeIn(t, memoryDir(t))
		tr.write(t, "root/p/q/r/f", "inside")
		fs := open(t, box, tr.root)
		var renames, refused atomic.Int64
		stop := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			deep, away := filepath.Join(tr.root, "p/q/r"), filepath.Join(tr.base, "outside/r")
			for {
				select {
				case <-stop:
					return
				default:
					if os.Rename(deep, away) == nil {
						renames.Add(1)
						if os.Rename(away, deep) != nil {
							return
						}
					}
				}
			}
		})
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, name := range []string{"p/q/r/../../../outside/secret.txt", "p/q/r/../secret.txt", "p/q/r/../dir/secret.txt"} {
					content, err := readAll(fs.Open(name))
					assert.NotContains(t, string(content), outsideMark)
					if !assert.Contains(t, []toolerr.Code{toolerr.NotFound, toolerr.OutsideRoot, toolerr.Conflict}, toolerr.CodeOf(err)) {
						return
					}
					refused.Add(1)
				}
			}
		})
		// A resolver that follows the directory is caught within some 1 500 tries.
		race(func() bool { return t.Failed() || renames.Load() > 0 && refused.Load() >= 3000 })
		close(stop)
		group.Wait()
		t.Logf("%d renames, %d refusals", renames.Load(), refused.Load())
		require.NotZero(t, renames.Load())
		require.NotZero(t, refused.Load())
	})
}
