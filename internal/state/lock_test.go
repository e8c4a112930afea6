//go:build unix

package state_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestMain lets the test binary act as the other processes: environment
// variables give their role and arguments.
func TestMain(m *testing.M) {
	roles := map[string]func() error{"count": countUp, "hold": holdLock}
	if role := os.Getenv("STATE_TEST_ROLE"); role != "" {
		if err := roles[role](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// roleProcess returns a command that runs the test binary in another role.
func roleProcess(role string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "STATE_TEST_ROLE="+role)...)
	cmd.Stderr = new(bytes.Buffer)
	return cmd
}

func noEnv(string) string { return "" }

// storeAt returns a store in dir; for "", a store that keeps nothing.
func storeAt(dir string) *state.Store {
	return state.New(state.Config{Dir: dir, Disabled: dir == "", LockWait: 5 * time.Minute})
}

func target(root, name string) (*sandbox.Target, error) {
	fs, err := sandbox.New(sandbox.Config{Roots: []string{root}, Getenv: noEnv}).FS(context.Background())
	if err != nil {
		return nil, err
	}
	return fs.OpenForWrite(name)
}

// fastDir returns a directory in memory if possible: the tests are about
// waiting for locks, not about the disk.
func fastDir(t *testing.T) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "state"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		if _, err := target(dir, "x"); err == nil {
			return dir
		}
	}
	return t.TempDir()
}

// appendLine changes a file like a tool: lock, read, change, replace.
func appendLine(store *state.Store, root, line string) error {
	ctx := context.Background()
	target, err := target(root, "counter")
	if err != nil {
		return err
	}
	defer target.Close()
	unlock, err := store.Lock(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := target.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	before, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	_, err = target.Replace(ctx, sandbox.Bytes(append(before, line...)), sandbox.ReplaceOptions{Expect: &file.Stat})
	return err
}

const (
	counters = 64
	counts   = 8
)

func countUp() error {
	store := storeAt(os.Getenv("STATE_TEST_DIR"))
	for i := range counts {
		if err := appendLine(store, os.Getenv("STATE_TEST_ROOT"), os.Getenv("STATE_TEST_NAME")+" "+strconv.Itoa(i)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// Processes with the same state directory, with different ones and without one
// change a file concurrently: every change is in the file once.
func TestEveryLockedChangeLands(t *testing.T) {
	for name, dirs := range map[string][]string{
		"one state directory": {"a"}, "no state": {""}, "mixed": {"a", "b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			base := fastDir(t)
			root := filepath.Join(base, "root")
			require.NoError(t, os.Mkdir(root, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, "counter"), nil, 0o644))
			var all []*exec.Cmd
			for i := range counters {
				dir := dirs[i%len(dirs)]
				if dir != "" {
					dir = filepath.Join(base, dir)
				}
				cmd := roleProcess("count", "STATE_TEST_DIR="+dir, "STATE_TEST_ROOT="+root, fmt.Sprintf("STATE_TEST_NAME=p%d", i))
				require.NoError(t, cmd.Start())
				all = append(all, cmd)
			}
			for _, cmd := range all {
				require.NoError(t, cmd.Wait(), "%s", cmd.Stderr)
			}
			content, err := os.ReadFile(filepath.Join(root, "counter"))
			require.NoError(t, err)
			seen := map[string]int{}
			for line := range strings.Lines(string(content)) {
				seen[line]++
			}
			require.Len(t, seen, counters*counts)
			require.Equal(t, counters*counts, strings.Count(string(content), "\n"), "none twice")
			entries, err := os.ReadDir(root)
			require.NoError(t, err)
			require.Len(t, entries, 1, "no litter")
		})
	}
}

// Goroutines of one process take turns as well, with a shared store or separate
// ones.
func TestEveryGoroutinesChangeLands(t *testing.T) {
	base := fastDir(t)
	root := filepath.Join(base, "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "counter"), nil, 0o644))
	shared := storeAt(filepath.Join(base, "a"))
	stores := []*state.Store{shared, shared, storeAt(filepath.Join(base, "a")), storeAt("")}
	var group sync.WaitGroup
	errs := make(chan error, 16*10)
	for i := range 16 {
		group.Go(func() {
			for j := range 10 {
				errs <- appendLine(stores[i%len(stores)], root, fmt.Sprintf("%d %d\n", i, j))
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	content, err := os.ReadFile(filepath.Join(root, "counter"))
	require.NoError(t, err)
	require.Equal(t, 160, strings.Count(string(content), "\n"))
}

// holdLock takes a lock, reports it, and holds it until the process is killed.
func holdLock() error {
	target, err := target(os.Getenv("STATE_TEST_ROOT"), "f")
	if err != nil {
		return err
	}
	if _, err := storeAt(os.Getenv("STATE_TEST_DIR")).Lock(context.Background(), target); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = os.Stdin.Read(make([]byte, 1))
	return err
}

// A lock names its holder while it is held, and ends with kill -9.
func TestNoLockOutlivesItsProcess(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	for _, tc := range []struct {
		name, theirs, ours, says string
		exists                   bool
	}{
		{"same state", "a", "a", "process ", true},
		{"same state, no file", "a", "a", "process ", false},
		{"other state", "a", "b", "another program", true},
		{"no state", "", "", "another program", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			os.Remove(filepath.Join(root, "f"))
			if tc.exists {
				require.NoError(t, os.WriteFile(filepath.Join(root, "f"), nil, 0o644))
			}
			dir := func(name string) string {
				if name == "" {
					return ""
				}
				return filepath.Join(base, name)
			}
			cmd := roleProcess("hold", "STATE_TEST_DIR="+dir(tc.theirs), "STATE_TEST_ROOT="+root)
			_, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			_, err = io.ReadFull(out, make([]byte, len("locked\n")))
			require.NoError(t, err, "%s", cmd.Stderr)

			target, err := target(root, "f")
			require.NoError(t, err)
			defer target.Close()
			store := storeAt(dir(tc.ours))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			_, err = store.Lock(ctx, target)
			require.Equal(t, toolerr.Locked, toolerr.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, tc.says)
			ctx, cancel = context.WithCancel(context.Background())
			time.AfterFunc(5*time.Millisecond, cancel)
			_, err = store.Lock(ctx, target)
			require.Equal(t, toolerr.Cancelled, toolerr.CodeOf(err), "%v", err)

			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
			unlock, err := store.Lock(context.Background(), target)
			require.NoError(t, err)
			unlock()
			unlock() // a second call does nothing
			again, err := store.Lock(context.Background(), target)
			require.NoError(t, err)
			again()
		})
	}
}

// A caller whose deadline has passed still learns who holds the lock.
func TestWhoHasTheLockIsNamedToThoseWhoDoNotWait(t *testing.T) {
	dir := t.TempDir()
	held, err := storeAt(dir).LockPath(t.Context(), "/held")
	require.NoError(t, err)
	defer held()
	store := storeAt(dir)
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for range 50 {
		_, err = store.LockPath(late, "/held")
		require.Equal(t, toolerr.Locked, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "process ")
	}
}

// Lock files that have not been used for a while are removed, except those in
// use.
func TestLockFilesAreCleared(t *testing.T) {
	dir := t.TempDir()
	store := storeAt(dir)
	ctx := context.Background()
	held, err := store.LockPath(ctx, "/held")
	require.NoError(t, err)
	for i := range 10 {
		unlock, err := store.LockPath(ctx, fmt.Sprintf("/f%d", i))
		require.NoError(t, err)
		unlock()
	}
	require.Len(t, files(t, dir), 11)
	past := time.Now().Add(-2 * time.Hour)
	entries, err := filepath.Glob(filepath.Join(dir, "locks-*", "*"))
	require.NoError(t, err)
	marks, err := filepath.Glob(filepath.Join(dir, "locks-*", ".*"))
	require.NoError(t, err)
	for _, path := range append(entries, marks...) {
		require.NoError(t, os.Chtimes(path, past, past))
	}
	unlock, err := store.LockPath(ctx, "/new")
	require.NoError(t, err)
	unlock()
	require.Len(t, files(t, dir), 2, "the held one and the new one")
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = storeAt(dir).LockPath(short, "/held")
	require.Equal(t, toolerr.Locked, toolerr.CodeOf(err))
	held()
	unlock, err = storeAt(dir).LockPath(ctx, "/held")
	require.NoError(t, err)
	unlock()
}

// Removing lock files while other processes open and lock them never lets two
// processes in at the same time.
func TestClearingLocksLetsNobodyIn(t *testing.T) {
	dir := fastDir(t)
	ctx := context.Background()
	var inside, most, turns atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	errs := make(chan error, 16)
	loop := func(step func() error) {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := step(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for range 6 {
		store := storeAt(dir) // a separate store, as another process has
		loop(func() error {
			unlock, err := store.LockPath(ctx, "/x")
			if err != nil {
				return err
			}
			if n := inside.Add(1); n > most.Load() {
				most.Store(n)
			}
			runtime.Gosched()
			inside.Add(-1)
			turns.Add(1)
			unlock()
			return nil
		})
	}
	clearer := storeAt(dir)
	loop(func() error {
		past := time.Now().Add(-2 * time.Hour)
		paths, err := filepath.Glob(filepath.Join(dir, "locks-1", "*"))
		for _, path := range append(paths, filepath.Join(dir, "locks-1", ".pruned")) {
			os.Chtimes(path, past, past) // the file may have been removed again
		}
		if err != nil {
			return err
		}
		unlock, err := clearer.LockPath(ctx, "/clear")
		if err == nil {
			unlock()
		}
		return err
	})
	group.Go(func() {
		for begun := time.Now(); len(errs) == 0 && (turns.Load() == 0 || time.Since(begun) < 500*time.Millisecond); {
			time.Sleep(time.Millisecond)
		}
		close(stop)
	})
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, most.Load())
	require.NotZero(t, turns.Load())
}
