package walk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// files is a tree: content by path. A path that ends in a slash is an empty
// directory; content that starts with "-> " makes a link.
type files map[string]string

// write creates the tree below dir.
func (f files) write(t testing.TB, dir string) {
	t.Helper()
	for _, name := range f.paths() {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(full, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if target, ok := strings.CutPrefix(f[name], "-> "); ok {
			require.NoError(t, os.Symlink(target, full))
			continue
		}
		require.NoError(t, os.WriteFile(full, []byte(f[name]), 0o644))
	}
}

func (f files) paths() []string {
	list := make([]string, 0, len(f))
	for name := range f {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}

// String formats a tree for a failure message.
func (f files) String() string {
	var b strings.Builder
	for _, name := range f.paths() {
		fmt.Fprintf(&b, "%q: %q\n", name, f[name])
	}
	return b.String()
}

// noEnv is an environment without user configuration.
func noEnv(key string) string {
	if key == "GIT_CONFIG_NOSYSTEM" {
		return "1"
	}
	return ""
}

// start opens sub, a directory below root.
func start(t testing.TB, root, sub string, opts walk.Options) *walk.Node {
	t.Helper()
	return startIn(t, openRoot(t, root), sub, opts)
}

func openRoot(t testing.TB, root string) *sandbox.FS {
	t.Helper()
	fs, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(context.Background())
	require.NoError(t, err)
	return fs
}

func startIn(t testing.TB, box *sandbox.FS, sub string, opts walk.Options) *walk.Node {
	t.Helper()
	if opts.Getenv == nil {
		opts.Getenv = noEnv
	}
	node, err := walk.Start(box, sub, opts)
	require.NoError(t, err)
	t.Cleanup(func() { node.Close() })
	return node
}

// collect walks and returns the sorted paths of the entries that keep accepts.
func collect(t testing.TB, node *walk.Node, keep func(*walk.Entry) bool) ([]string, walk.Report) {
	t.Helper()
	found := make([][]string, 16)
	report, err := walk.Walk(context.Background(), node, func(worker int, e *walk.Entry) error {
		if keep(e) {
			found[worker] = append(found[worker], e.Path)
		}
		return nil
	})
	require.NoError(t, err)
	all := slices.Concat(found...)
	slices.Sort(all)
	return all, report
}

func regular(e *walk.Entry) bool { return e.IsRegular() }
func anything(*walk.Entry) bool  { return true }
