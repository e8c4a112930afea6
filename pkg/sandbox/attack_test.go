//go:build unix

package sandbox_test

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// attack is a way to ask for a file. Its result is content or an error code.
type attack struct {
	name string // BASE means the directory of the whole fixture
	want string
	code toolerr.Code
}

var attacks = []attack{
	// What must work.
	{"a.txt", "a", ""},
	{"./a.txt", "a", ""},
	{"dir//sub/./c.txt", "c", ""},
	{"dir/../a.txt", "a", ""},
	{"dir/sub/../../dir/b.txt", "b", ""},
	{"..dots/d.txt", "d", ""},
	{"...", "dots", ""},
	{"BASE/root/dir/b.txt", "b", ""},
	{"BASE//root/./dir/b.txt", "b", ""},
	{"BASE/outside/../root/a.txt", "a", ""},
	{"BASE/second/s.txt", "s", ""},
	{"../second/s.txt", "s", ""},
	{"file-link", "a", ""},
	{"abs-link", "a", ""},
	{"dir-link/b.txt", "b", ""},
	{"abs-dir-link/sub/c.txt", "c", ""},
	{"abs-dir-link/../a.txt", "a", ""},
	{"up/a.txt", "a", ""},
	{"second-link", "s", ""},
	{"second-rel/s.txt", "s", ""},
	{"second-rel/../root/a.txt", "a", ""},
	{"chain40", "a", ""},
	{"BASE/alias/a.txt", "a", ""},
	{"BASE/alias/dir-link/b.txt", "b", ""},
	{"alias-link", "a", ""},
	// No meaning beyond the bytes.
	{"~", "tilde", ""},
	{"~/a.txt", "", toolerr.NotADirectory},
	{"~root/.profile", "", toolerr.NotFound},
	{"%2e%2e/e.txt", "encoded", ""},
	{"%2e%2e/outside/secret.txt", "", toolerr.NotFound},
	{"..%2foutside%2fsecret.txt", "", toolerr.NotFound},
	{`\x2e\x2e/outside/secret.txt`, "", toolerr.NotFound},
	{`..\outside\secret.txt`, "", toolerr.NotFound},
	{"..\u2215outside\u2215secret.txt", "", toolerr.NotFound},
	{"\uff0e\uff0e/outside/secret.txt", "", toolerr.NotFound},
	{"file:///etc/passwd", "", toolerr.NotFound},
	// Out by ...
	{"..", "", toolerr.OutsideRoot},
	{"../", "", toolerr.OutsideRoot},
	{"../outside/secret.txt", "", toolerr.OutsideRoot},
	{"dir/../../outside/secret.txt", "", toolerr.OutsideRoot},
	{"dir/sub/../../../outside/secret.txt", "", toolerr.OutsideRoot},
	{"dir-link/../../outside/secret.txt", "", toolerr.OutsideRoot},
	{"BASE/root/../outside/secret.txt", "", toolerr.OutsideRoot},
	{"../../../../../../../../etc/passwd", "", toolerr.OutsideRoot},
	// Out by another root's name.
	{"BASE/root-evil/secret.txt", "", toolerr.OutsideRoot},
	{"../root-evil/secret.txt", "", toolerr.OutsideRoot},
	{"BASE/roo", "", toolerr.OutsideRoot},
	{"BASE/outside/secret.txt", "", toolerr.OutsideRoot},
	{"BASE", "", toolerr.OutsideRoot},
	{"/", "", toolerr.OutsideRoot},
	{"/etc/passwd", "", toolerr.OutsideRoot},
	{"//etc/passwd", "", toolerr.OutsideRoot},
	// Out by links.
	{"out-link", "", toolerr.OutsideRoot},
	{"out-link/", "", toolerr.OutsideRoot},
	{"out-rel", "", toolerr.OutsideRoot},
	{"out-dir/secret.txt", "", toolerr.OutsideRoot},
	{"out-dir/", "", toolerr.OutsideRoot},
	{"out-dir/missing", "", toolerr.OutsideRoot},
	{"out-dangling", "", toolerr.OutsideRoot},
	{"out-chain", "", toolerr.OutsideRoot},
	{"abs-dir-link/out", "", toolerr.OutsideRoot},
	{"out-dir/../root/secret.txt", "", toolerr.OutsideRoot},
	{"evil-link", "", toolerr.OutsideRoot},
	// Links that lead nowhere.
	{"loop", "", toolerr.NotFound},
	{"loop-a", "", toolerr.NotFound},
	{"loop-dir/a.txt", "", toolerr.NotFound},
	{"chain41", "", toolerr.NotFound},
	{"dangling", "", toolerr.NotFound},
	// The kind of thing.
	{"a.txt/", "", toolerr.NotADirectory},
	{"a.txt/.", "", toolerr.NotADirectory},
	{"a.txt/x", "", toolerr.NotADirectory},
	{"a.txt/../a.txt", "", toolerr.NotADirectory},
	{"file-link/", "", toolerr.NotADirectory},
	{"dir", "", toolerr.IsADirectory},
	{"dir/", "", toolerr.IsADirectory},
	{"dir-link/", "", toolerr.IsADirectory},
	{".", "", toolerr.IsADirectory},
	{"", "", toolerr.IsADirectory},
	{"fifo", "", toolerr.SpecialFile},
	{"fifo-link", "", toolerr.SpecialFile},
	{"fifo/x", "", toolerr.NotADirectory},
	{"socket", "", toolerr.SpecialFile},
	{"missing", "", toolerr.NotFound},
	{"missing/../a.txt", "", toolerr.NotFound},
	// Links into /proc.
	{"proc-self", "", toolerr.OutsideRoot},
	{"proc-cwd", "", toolerr.OutsideRoot},
	{"proc-root/BASE/root/a.txt", "", toolerr.OutsideRoot},
	{"/proc/self/environ", "", toolerr.OutsideRoot},
	{"/proc/self/cwd/sandbox.go", "", toolerr.OutsideRoot},
	{"/proc/self/root/BASE/root/a.txt", "", toolerr.OutsideRoot},
	{"/dev/null", "", toolerr.OutsideRoot},
	{"null-link", "", toolerr.OutsideRoot},
	// What no system takes.
	{"a.txt\x00", "", toolerr.InvalidParams},
	{"a.txt\x00/../../outside/secret.txt", "", toolerr.InvalidParams},
	{strings.Repeat("a", 256), "", toolerr.InvalidParams},
	{"dir/" + strings.Repeat("\u00e9", 128), "", toolerr.InvalidParams},
	{strings.Repeat("dir/../", 600) + "a.txt", "", toolerr.InvalidParams},
	{strings.Repeat("a", 255), "", toolerr.NotFound},
	{strings.Repeat("dir/../", 580) + "a.txt", "a", ""},
	{strings.Repeat("./", 2045) + "a.txt", "a", ""},
}

func attackTree(t *testing.T) tree {
	tr := newTree(t)
	for name, target := range map[string]string{
		"file-link": "a.txt", "abs-link": "BASE/root/a.txt", "dir-link": "dir", "abs-dir-link": "BASE/root/dir",
		"up": "dir/..", "dir/out": "../../outside/secret.txt",
		"second-link": "BASE/second/s.txt", "second-rel": "../second", "alias-link": "BASE/alias/a.txt",
		"out-link": "BASE/outside/secret.txt", "out-rel": "../outside/secret.txt", "out-dir": "../outside",
		"out-dangling": "BASE/outside/nothing", "out-chain": "out-rel", "evil-link": "../root-evil/secret.txt",
		"loop": "loop", "loop-a": "loop-b", "loop-b": "loop-a", "loop-dir": "loop-dir/x", "dangling": "nothing",
		"fifo-link": "fifo", "null-link": "/dev/null",
		"proc-self": "/proc/self/environ", "proc-cwd": "/proc/self/cwd", "proc-root": "/proc/self/root",
		"chain1": "a.txt", "../alias": "BASE/root",
	} {
		tr.link(t, strings.ReplaceAll(target, "BASE", tr.base), "root/"+name)
	}
	for i := 2; i <= 41; i++ {
		tr.link(t, fmt.Sprintf("chain%d", i-1), fmt.Sprintf("root/chain%d", i))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(tr.root, "fifo"), 0o644))
	listen(t, filepath.Join(tr.root, "socket"))
	return tr
}

// listen makes a socket file; its short way round a path limit is the
// working directory's.
func listen(t *testing.T, path string) {
	t.Helper()
	short, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	require.NoError(t, os.Rename(filepath.Join(short, "s"), path))
}

func TestAttacks(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := attackTree(t)
		fs := open(t, box, tr.root, tr.second+":ro")
		for _, c := range attacks {
			name := strings.ReplaceAll(c.name, "BASE", tr.base)
			label := c.name
			if len(label) > 40 {
				label = label[:40]
			}
			t.Run(label, func(t *testing.T) {
				content, err := within(t, func() (string, error) { return read(t, fs, name) })
				if c.code != "" {
					requireCode(t, c.code, err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.want, content)
			})
		}
	})
}

// within fails the test when a call does not come back: it waits on a fifo.
func within(t *testing.T, call func() (string, error)) (string, error) {
	t.Helper()
	type answer struct {
		content string
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		content, err := call()
		done <- answer{content, err}
	}()
	select {
	case a := <-done:
		return a.content, a.err
	case <-time.After(20 * time.Second):
		t.Fatal("the call blocks")
		return "", nil
	}
}

// The directory and metadata calls go by the same resolver.
func TestAttacksOnDirectories(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := attackTree(t)
		fs := open(t, box, tr.root)
		for _, name := range []string{"..", "out-dir", "out-dir/", "dir/../..", tr.base, "/", "proc-root", "second-rel", tr.root + "-evil"} {
			_, err := fs.OpenDir(name)
			requireCode(t, toolerr.OutsideRoot, err)
			_, err = fs.Stat(name)
			requireCode(t, toolerr.OutsideRoot, err)
		}
		for _, name := range []string{".", "", "dir", "dir/", "dir-link", "abs-dir-link/sub", tr.root, tr.root + "/", tr.base + "/alias", "dir/.."} {
			d, err := fs.OpenDir(name)
			require.NoError(t, err, name)
			require.True(t, strings.HasPrefix(d.Path(), tr.root), d.Path())
			require.NoError(t, d.Close())
			st, err := fs.Stat(name)
			require.NoError(t, err, name)
			require.True(t, st.Mode.IsDir())
		}
		for name, code := range map[string]toolerr.Code{
			"a.txt": toolerr.NotADirectory, "a.txt/": toolerr.NotADirectory, "fifo": toolerr.NotADirectory,
			"missing": toolerr.NotFound, "loop": toolerr.NotFound, "dangling": toolerr.NotFound,
		} {
			_, err := fs.OpenDir(name)
			requireCode(t, code, err)
		}
		st, err := fs.Stat("fifo-link")
		require.NoError(t, err)
		require.Equal(t, iofs.ModeNamedPipe, st.Mode.Type())
		d, err := fs.OpenDir("dir")
		require.NoError(t, err)
		require.NoError(t, d.Close())
		st, err = fs.Stat("dir/out")
		require.Equal(t, sandbox.Stat{}, st)
		requireCode(t, toolerr.OutsideRoot, err)
	})
}

// An error about something outside must be word for word the same whether it
// exists, is a file, a directory, unreadable or nothing.
func TestOutsideTellsNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		require.NoError(t, os.Mkdir(filepath.Join(tr.base, "outside/locked"), 0))
		targets := []string{"secret.txt", "nothing0", "dir", "dir/secret.txt", "nothing/deep/er", "locked", "locked/x", ".ssh/id_rsa", "secret.txt/x"}
		for i, target := range targets {
			tr.link(t, filepath.Join(tr.base, "outside", target), fmt.Sprintf("root/abs%d", i))
			tr.link(t, "../outside/"+target, fmt.Sprintf("root/rel%d", i))
		}
		fs := open(t, box, tr.root)
		texts := map[string]bool{}
		for i, target := range targets {
			for name, placeholder := range map[string]string{
				filepath.Join(tr.base, "outside", target): "NAME",
				"../outside/" + target:                    "NAME",
				fmt.Sprintf("abs%d", i):                   "NAME",
				fmt.Sprintf("rel%d", i):                   "NAME",
				fmt.Sprintf("rel%d/", i):                  "NAME",
			} {
				_, err := fs.Open(name)
				requireCode(t, toolerr.OutsideRoot, err)
				texts[strings.Replace(err.Error(), name, placeholder, 1)] = true
				require.Nil(t, errors.Unwrap(err), "a cause would tell")
				_, err = fs.OpenDir(name)
				requireCode(t, toolerr.OutsideRoot, err)
				texts[strings.Replace(err.Error(), name, placeholder, 1)] = true
				_, err = fs.Stat(name)
				requireCode(t, toolerr.OutsideRoot, err)
				texts[strings.Replace(err.Error(), name, placeholder, 1)] = true
			}
		}
		require.Len(t, texts, 1, "%v", texts)
	})
}
