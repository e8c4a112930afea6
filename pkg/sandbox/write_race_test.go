//go:build unix

package sandbox_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestWriteSwapRace writes through names that are swapped all the while
// between something inside and a way out: 0 escapes, and nothing is written
// to a secret or protected place.
func TestWriteSwapRace(t *testing.T) {
	bothAtOnce(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTreeIn(t, memoryDir(t))
		tr.write(t, "outside/f", outsideMark)
		tr.write(t, "root/.ssh/f", secretMark)
		tr.write(t, "root/.git/hooks/f", secretMark)
		var swapped []string
		for name, target := range map[string]string{"dir": "../outside", "abs": tr.base + "/outside", "store": ".ssh", "hook": ".git/hooks"} {
			path := filepath.Join(tr.root, name)
			tr.write(t, "root/"+name+".one/f", "inside")
			require.NoError(t, os.Symlink(target, path+".two"))
			swapped = append(swapped, path)
		}
		tr.write(t, "root/file.one", "inside")
		require.NoError(t, os.Symlink("../outside/f", filepath.Join(tr.root, "file.two")))
		swapped = append(swapped, filepath.Join(tr.root, "file"))

		fs := open(t, box, tr.root)
		var swaps, writes, refusals atomic.Int64
		stop := make(chan struct{})
		var group sync.WaitGroup
		for _, name := range swapped {
			group.Go(func() { swap(name, stop, &swaps) })
		}
		bad := make(chan error, 1)
		for range 2 {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					for _, name := range []string{"dir/f", "dir/new", "abs/f", "abs/made/new", "store/f", "store/new", "hook/f", "hook/new", "file"} {
						switch err := writeAndGo(fs, name); {
						case err == nil:
							writes.Add(1)
						case toolerr.CodeOf(err) == toolerr.ExecutionError || toolerr.CodeOf(err) == toolerr.Internal:
							select {
							case bad <- err:
							default:
							}
						default:
							refusals.Add(1)
						}
					}
				}
			})
		}
		race(func() bool { return writes.Load() > 0 && refusals.Load() > 0 })
		close(stop)
		group.Wait()
		t.Logf("%d renames, %d writes, %d refusals", swaps.Load(), writes.Load(), refusals.Load())
		require.NotZero(t, writes.Load())
		require.NotZero(t, refusals.Load())
		select {
		case err := <-bad:
			require.NoError(t, err, "no race excuses an error that says nothing")
		default:
		}
		require.Equal(t, outsideMark, tr.onDisk(t, "outside/f"))
		require.Equal(t, outsideMark, tr.onDisk(t, "outside/secret.txt"))
		require.Equal(t, secretMark, tr.onDisk(t, "root/.ssh/f"))
		require.Equal(t, secretMark, tr.onDisk(t, "root/.git/hooks/f"))
		for dir, want := range map[string]int{"outside": 5, "root/.ssh": 1, "root/.git/hooks": 1} {
			entries, err := os.ReadDir(filepath.Join(tr.base, dir))
			require.NoError(t, err)
			require.Len(t, entries, want, "%s: %v", dir, entries)
		}
	})
}

// writeAndGo writes a file, or removes it if it is no old one.
func writeAndGo(fs *sandbox.FS, name string) error {
	target, err := fs.OpenForWrite(name)
	if err != nil {
		return err
	}
	defer target.Close()
	if _, err = target.Replace(context.Background(), sandbox.Bytes([]byte("written")), sandbox.ReplaceOptions{MakeParents: true}); err != nil {
		return err
	}
	if strings.HasSuffix(name, "new") {
		if _, err := target.Remove(context.Background(), nil); err != nil {
			return err
		}
	}
	return nil
}

// A directory that is moved out of the root while a file in it is written
// takes nothing with it, whatever takes its place.
func TestDirectoryIsMovedAway(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		for _, successor := range []string{"nothing", "link", "directory"} {
			for _, name := range []string{"dir/b.txt", "dir/new", "dir/x/y/new"} {
				tr := newTree(t)
				target, err := open(t, box, tr.root).OpenForWrite(name)
				require.NoError(t, err)
				defer target.Close()
				_, err = target.Replace(context.Background(), func(w io.Writer) error {
					require.NoError(t, os.Rename(filepath.Join(tr.root, "dir"), filepath.Join(tr.base, "outside/moved")))
					switch successor {
					case "link":
						tr.link(t, "../outside/moved", "root/dir")
					case "directory":
						tr.write(t, "root/dir/x/y/other", "")
					}
					_, err := w.Write([]byte("written"))
					return err
				}, sandbox.ReplaceOptions{MakeParents: true})
				requireCode(t, toolerr.Conflict, err)
				require.Equal(t, "b", tr.onDisk(t, "outside/moved/b.txt"))
				entries, err := os.ReadDir(filepath.Join(tr.base, "outside/moved"))
				require.NoError(t, err)
				require.Len(t, entries, 2)
			}
		}
	})
}

// Readers never find the name missing, nor a part of a file.
func TestTheNameIsNeverMissing(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTreeIn(t, memoryDir(t))
		one, two := strings.Repeat("1", 100_000), strings.Repeat("2", 50_000)
		tr.write(t, "root/f", one)
		fs := open(t, box, tr.root)
		stop := make(chan struct{})
		var reads atomic.Int64
		failed := make(chan string, 1)
		var group sync.WaitGroup
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				content, err := os.ReadFile(filepath.Join(tr.root, "f"))
				if s := string(content); err != nil || s != one && s != two {
					select {
					case failed <- "missing or mixed":
					default:
					}
				}
				reads.Add(1)
			}
		})
		for i := 0; i < 300 || reads.Load() < 100; i++ {
			_, err := put(fs, "f", []string{two, one}[i%2], sandbox.ReplaceOptions{})
			require.NoError(t, err)
		}
		close(stop)
		group.Wait()
		select {
		case what := <-failed:
			t.Fatal(what)
		default:
		}
	})
}
