package nofollow

import (
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newTree makes the files d/x and d/closed/y, a link to d and a link to a file
// outside.
func newTree(t *testing.T) (tree *Tree, root, outside string) {
	t.Helper()
	place := t.TempDir()
	root, outside = filepath.Join(place, "root"), filepath.Join(place, "outside")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "d", "closed"), 0o755))
	require.NoError(t, os.WriteFile(outside, []byte("o"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "d", "x"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "d", "closed", "y"), []byte("y"), 0o600))
	require.NoError(t, os.Symlink("d", filepath.Join(root, "link")))
	require.NoError(t, os.Symlink("../outside", filepath.Join(root, "out")))
	tree, err := Open(root)
	require.NoError(t, err)
	t.Cleanup(func() { tree.Close() })
	return tree, root, outside
}

func TestNoLinkIsFollowed(t *testing.T) {
	tree, root, outside := newTree(t)
	for _, rel := range []string{"link/x", "link/new", "link/closed/y", "out/x", "d/x/y"} {
		for name, err := range map[string]error{
			"lstat":    second(tree.Lstat(rel)),
			"open":     second(tree.OpenFile(rel)),
			"create":   second(tree.Create(rel, 0o600)),
			"names":    second(tree.Names(rel)),
			"readlink": second(tree.Readlink(rel)),
			"mkdir":    tree.Mkdir(rel, 0o700),
			"mkfifo":   tree.Mkfifo(rel, 0o600),
			"symlink":  tree.Symlink("t", rel),
			"link":     tree.Link("d/x", rel),
			"link of":  tree.Link(rel, "new"),
			"rename":   tree.Rename("d/x", rel),
			"move in":  tree.MoveIn(outside, rel),
			"remove":   tree.Remove(rel),
			"chmod":    tree.Chmod(rel, 0o777),
		} {
			require.True(t, IsMissing(err), "%s %s: %v", name, rel, err)
		}
		require.NoError(t, tree.RemoveAll(rel))
	}
	require.Error(t, tree.Chmod("out", 0o777))
	require.Error(t, second(tree.OpenFile("out")))
	require.Error(t, second(tree.Names("link")))
	for _, rel := range []string{"../outside", "d/../../outside", outside} {
		require.Error(t, second(tree.Lstat(rel)), rel)
		require.Error(t, second(tree.OpenFile(rel)), rel)
		fd, err := tree.openByComponent(rel, unix.O_RDONLY, 0)
		require.Error(t, err, "%s %d", rel, fd)
	}
	info, err := os.Stat(outside)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	names, err := tree.Names(".")
	require.NoError(t, err)
	sort.Strings(names)
	require.Equal(t, []string{"d", "link", "out"}, names)
	require.FileExists(t, filepath.Join(root, "d", "x"))
}

// Without openat2, on an older kernel or in a container, paths are opened
// component by component.
func TestOpenByName(t *testing.T) {
	tree, _, _ := newTree(t)
	for _, c := range []struct {
		rel   string
		flags int
		want  error
	}{
		{"d/closed/y", unix.O_RDONLY, nil},
		{".", unix.O_PATH | unix.O_DIRECTORY, nil},
		{"link", unix.O_PATH | unix.O_NOFOLLOW, nil},
		{"link", unix.O_RDONLY, unix.ELOOP},
		{"link/x", unix.O_RDONLY, unix.ELOOP},
		{"d/x/y", unix.O_RDONLY, unix.ENOTDIR},
		{"d/none", unix.O_RDONLY, unix.ENOENT},
		{"../outside", unix.O_RDONLY, unix.EXDEV},
	} {
		fd, err := tree.openByComponent(c.rel, c.flags, 0)
		require.Equal(t, c.want, err, c.rel)
		if err == nil {
			require.NoError(t, unix.Close(fd))
		}
	}
}

func TestRemoveAll(t *testing.T) {
	tree, root, outside := newTree(t)
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "d", "closed", "out")))
	require.NoError(t, os.Chmod(filepath.Join(root, "d", "closed"), 0))
	require.NoError(t, tree.RemoveAll("d"))
	require.NoError(t, tree.RemoveAll("d"))
	require.NoError(t, tree.RemoveAll("out"))
	require.Error(t, tree.RemoveAll("."))
	require.NoDirExists(t, filepath.Join(root, "d"))
	require.FileExists(t, outside)
}

func second[T any](_ T, err error) error { return err }
