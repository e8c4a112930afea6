package proc_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// The cached result for a search path is equal to a new one, whatever happened
// to the files on its paths.
func TestSearchPathIsRemembered(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	name := func() string { return filepath.Join(dir, string("abcd"[rand.IntN(4)]), string("xy"[rand.IntN(2)])) }
	target := func() string {
		switch rand.IntN(4) {
		case 0:
			return filepath.Base(name())
		case 1:
			return "../" + string("abcd"[rand.IntN(4)])
		case 2:
			return string("xy"[rand.IntN(2)]) + "/../" + string("xy"[rand.IntN(2)])
		}
		return name()
	}
	var list []string
	for _, top := range []string{"a", "b", "c", "d"} {
		list = append(list, filepath.Join(dir, top), filepath.Join(dir, top, "x"), filepath.Join(dir, top, "y"), filepath.Join(dir, top)+"/x/../y")
	}
	path, writable := strings.Join(list, ":"), []string{filepath.Join(dir, "a")}
	known := proc.NewSearchPathCache()
	seen := map[string]bool{}
	for range 600 {
		at := name()
		if rand.IntN(3) == 0 {
			at = filepath.Dir(at)
		}
		os.RemoveAll(at) //nolint:errcheck // it may be behind a link that leads nowhere
		switch rand.IntN(4) {
		case 0:
			os.Symlink(target(), at) //nolint:errcheck // this may fail too
		case 1:
			os.WriteFile(at, nil, 0o600) //nolint:errcheck
		default:
			os.MkdirAll(at, 0o700) //nolint:errcheck
		}
		var want []string
		for _, entry := range list {
			real, err := filepath.EvalSymlinks(entry)
			if err == nil && !beneath(writable[0], entry) && !beneath(writable[0], real) && !slices.Contains(want, entry) {
				want = append(want, entry)
			}
		}
		got := known.Safe(path, writable)
		require.Equal(t, strings.Join(want, ":"), got, "%s", tree(dir))
		seen[got] = true
	}
	require.Greater(t, len(seen), 10, "there was something to tell apart")
}

func beneath(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// tree lists the files below a directory, for messages.
func tree(dir string) string {
	var b strings.Builder
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error { //nolint:errcheck // list as much as possible
		if err == nil {
			link, _ := os.Readlink(path)
			fmt.Fprintln(&b, path, e.Type(), link)
		}
		return nil
	})
	return b.String()
}
