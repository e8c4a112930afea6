package walk_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// descriptors returns the number of open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// deep makes a chain of n directories called d below root. Those up to
// walk.MaxDepth have a file f.
func deep(t *testing.T, root string, n int) {
	t.Helper()
	dir, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, unix.Mkdirat(dir, "d", 0o755))
		next, err := unix.Openat(dir, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(dir))
		dir = next
		if i > walk.MaxDepth {
			continue
		}
		f, err := unix.Openat(dir, "f", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		require.NoError(t, err)
		require.NoError(t, unix.Close(f))
	}
	require.NoError(t, unix.Close(dir))
}

func TestDeepTreeIsCutAndReported(t *testing.T) {
	root := t.TempDir()
	deep(t, root, 5000)
	before := descriptors(t)
	node := start(t, root, ".", walk.Options{})
	seen, report := collect(t, node, anything)
	require.Len(t, seen, 2*walk.MaxDepth-1)
	require.Equal(t, 1, report.TooDeep)
	require.False(t, report.Partial)
	require.NoError(t, node.Close())
	require.LessOrEqual(t, descriptors(t), before+1, "the root stays open")
}

func TestDescriptorsAreClosed(t *testing.T) {
	root := t.TempDir()
	f := bushy(400)
	f.write(t, root)
	node := start(t, root, ".", walk.Options{Workers: 4})
	before := descriptors(t)
	for _, reason := range []error{fs.SkipAll, context.Canceled, nil} {
		for stop := 1; stop < 400; stop += 31 {
			n := 0
			report, err := walk.Walk(context.Background(), start(t, root, ".", walk.Options{Workers: 1}), func(int, *walk.Entry) error {
				if n++; n >= stop {
					return reason
				}
				return nil
			})
			require.True(t, reason == nil || report.Partial, "%v", err)
		}
	}
	_, _ = collect(t, node, anything)
	require.LessOrEqual(t, descriptors(t)-before, 2*39, "one for each start, which the test still holds, and its root")
}

// With hardly any directory kept open, a walk still finds everything, also with
// ignore files.
func TestFewDirectoriesOpen(t *testing.T) {
	root := t.TempDir()
	f := bushy(300)
	f["d3/.ignore"] = "e1"
	f.write(t, root)
	deep(t, root, 100)
	want, _ := collect(t, start(t, root, ".", walk.Options{}), anything)
	for _, open := range []int{1, 2, 5} {
		opts := walk.Options{Workers: 4}.WithMaxOpen(open)
		got, report := collect(t, start(t, root, ".", opts), anything)
		require.Equal(t, want, got)
		require.Zero(t, report.Unreadable)
	}
}

// A walk works with only a few descriptors left in the process.
func TestDescriptorsRunOut(t *testing.T) {
	root := t.TempDir()
	deep(t, root, 120)
	want, _ := collect(t, start(t, root, ".", walk.Options{}), anything)
	node := start(t, root, ".", walk.Options{Workers: 2})
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	top, err := unix.Dup(0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(top))
	few := limit
	few.Cur = uint64(top + 12)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	got, report := collect(t, node, anything)
	require.Equal(t, want, got)
	require.Zero(t, report.Unreadable)
}

func TestIgnoreFileThatIsAFifo(t *testing.T) {
	root := t.TempDir()
	files{"a": "", "d/b": ""}.write(t, root)
	require.NoError(t, unix.Mkfifo(filepath.Join(root, ".ignore"), 0o600))
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "d", ".git"), 0o600))
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "d", ".gitignore"), 0o600))
	got, report := collect(t, start(t, root, "d", walk.Options{}), regular)
	require.Equal(t, []string{"b"}, got)
	require.Len(t, report.Faults, 2)
	for _, f := range report.Faults {
		require.Equal(t, toolerr.SpecialFile, toolerr.CodeOf(f.Err))
	}
}

// A cancelled walk ends with the current slow visit.
func TestCancelDoesNotWaitForTheRest(t *testing.T) {
	root := t.TempDir()
	bushy(300).write(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	visits := 0
	report, err := walk.Walk(ctx, start(t, root, ".", walk.Options{Workers: 1}), func(int, *walk.Entry) error {
		visits++
		cancel() // during a visit: a deadline may pass before the first
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, visits)
	require.True(t, report.Partial)
}
