//go:build unix

package sandbox_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// requireNoLitter fails if a temporary file is left in dir.
func requireNoLitter(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		require.NotContains(t, filepath.Base(path), ".toolroom-")
		return err
	}))
}

func TestReplace(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root, tr.second)
		path := filepath.Join(tr.root, "a.txt")
		require.NoError(t, os.Chmod(path, 0o751))
		before, err := os.Stat(path)
		require.NoError(t, err)

		done, err := put(fs, "a.txt", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.False(t, done.Created)
		require.Empty(t, done.InPlace)
		require.NoError(t, done.Unsynced)
		require.Equal(t, "new", tr.onDisk(t, "root/a.txt"))
		after, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
		require.False(t, os.SameFile(before, after), "a new inode, so that nobody reads half of it")
		st, err := fs.Stat("a.txt")
		require.NoError(t, err)
		require.Equal(t, st, done.Stat)

		old := syscall.Umask(0o027)
		done, err = put(fs, "made/by/us/f", "x", sandbox.ReplaceOptions{MakeParents: true, Create: true})
		exe, err2 := put(fs, "made/run", "#!", sandbox.ReplaceOptions{Executable: true})
		syscall.Umask(old)
		require.NoError(t, err)
		require.NoError(t, err2)
		require.True(t, done.Created)
		require.Equal(t, []string{tr.root + "/made", tr.root + "/made/by", tr.root + "/made/by/us"}, done.Parents)
		require.Equal(t, "-rw-r-----", done.Stat.Mode.String())
		require.Equal(t, "-rwxr-x---", exe.Stat.Mode.String())
		require.Equal(t, "x", tr.onDisk(t, "root/made/by/us/f"))
		requireNoLitter(t, tr.base)
	})
}

func TestReplaceIsConditional(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		target, err := fs.OpenForWrite("a.txt")
		require.NoError(t, err)
		defer target.Close()
		file, err := target.Open()
		require.NoError(t, err)
		require.NoError(t, file.Close())

		// Somebody else changes it between the reading and the last step.
		_, err = target.Replace(context.Background(), func(w io.Writer) error {
			tr.write(t, "root/a.txt", "theirs")
			return sandbox.Bytes([]byte("ours"))(w)
		}, sandbox.ReplaceOptions{Expect: &file.Stat})
		requireCode(t, toolerr.Stale, err)
		require.Equal(t, "theirs", tr.onDisk(t, "root/a.txt"))
		_, err = target.Replace(context.Background(), sandbox.Bytes(nil), sandbox.ReplaceOptions{Expect: &file.Stat})
		requireCode(t, toolerr.Stale, err)
		_, err = target.Replace(context.Background(), func(io.Writer) error {
			return os.Remove(filepath.Join(tr.root, "a.txt"))
		}, sandbox.ReplaceOptions{})
		requireCode(t, toolerr.Stale, err)
		require.NoFileExists(t, filepath.Join(tr.root, "a.txt"))

		// A file that appears at the last moment is not overwritten, nor are
		// directories kept that were made for ours.
		_, err = put(fs, "new", "ours", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		_, err = put(fs, "new", "again", sandbox.ReplaceOptions{Create: true})
		requireCode(t, toolerr.Exists, err)
		late, err := fs.OpenForWrite("deep/er/late")
		require.NoError(t, err)
		defer late.Close()
		require.Equal(t, []string{tr.root + "/deep", tr.root + "/deep/er"}, late.MissingParents())
		_, err = late.Replace(context.Background(), sandbox.Bytes(nil), sandbox.ReplaceOptions{})
		requireCode(t, toolerr.NotFound, err)
		_, err = late.Replace(context.Background(), func(io.Writer) error { return syscall.EIO }, sandbox.ReplaceOptions{MakeParents: true})
		require.ErrorIs(t, err, syscall.EIO)
		require.NoDirExists(t, filepath.Join(tr.root, "deep"))
		_, err = late.Replace(context.Background(), func(io.Writer) error {
			tr.write(t, "root/deep/er/late", "theirs")
			return nil
		}, sandbox.ReplaceOptions{MakeParents: true})
		requireCode(t, toolerr.Exists, err)
		require.Equal(t, "theirs", tr.onDisk(t, "root/deep/er/late"))
		requireNoLitter(t, tr.base)
	})
}

func TestReplaceIsCancelled(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		target, err := open(t, box, tr.root).OpenForWrite("a.txt")
		require.NoError(t, err)
		defer target.Close()
		ctx, cancel := context.WithCancel(context.Background())
		_, err = target.Replace(ctx, func(w io.Writer) error {
			cancel()
			_, err := w.Write(make([]byte, 1<<20))
			return err
		}, sandbox.ReplaceOptions{})
		requireCode(t, toolerr.Cancelled, err)
		require.Equal(t, "a", tr.onDisk(t, "root/a.txt"))
		requireNoLitter(t, tr.base)
	})
}

func TestRemove(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		target, err := fs.OpenForWrite("a.txt")
		require.NoError(t, err)
		defer target.Close()
		was, err := target.Stat()
		require.NoError(t, err)
		tr.write(t, "root/a.txt", "changed")
		_, err = target.Remove(context.Background(), &was)
		requireCode(t, toolerr.Stale, err)
		unsynced, err := target.Remove(context.Background(), nil)
		require.NoError(t, err)
		require.NoError(t, unsynced)
		require.NoFileExists(t, filepath.Join(tr.root, "a.txt"))
		_, err = target.Remove(context.Background(), nil)
		requireCode(t, toolerr.NotFound, err)
	})
}

// Each way to a place that must not be written is refused with its code.
func TestOpenForWriteRefuses(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.link(t, "../outside/secret.txt", "root/out")
		tr.link(t, tr.base+"/outside", "root/outdir")
		tr.link(t, "../outside/new", "root/dangling")
		tr.link(t, "loop", "root/loop")
		tr.link(t, ".ssh/config", "root/innocent")
		tr.write(t, "root/.ssh/config", "secret")
		tr.write(t, "root/key", "-----BEGIN OPENSSH PRIVATE KEY-----\n")
		tr.write(t, "root/ro/f", "fixed")
		tr.write(t, "root/.git/hooks/pre-commit", "#!")
		tr.link(t, ".git/hooks", "root/h")
		tr.write(t, "root/.codex/x", "")
		require.NoError(t, syscall.Mkfifo(filepath.Join(tr.root, "fifo"), 0o644))
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		require.NoError(t, err)
		defer syscall.Close(fd)
		t.Chdir(tr.root)
		require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: "socket"}))
		fs := open(t, box, tr.root, tr.root+"/ro:ro", tr.second+":ro")
		for name, code := range map[string]toolerr.Code{
			"../outside/secret.txt": toolerr.OutsideRoot, "/etc/passwd": toolerr.OutsideRoot, "out": toolerr.OutsideRoot,
			"outdir/new": toolerr.OutsideRoot, "outdir/x/y": toolerr.OutsideRoot, "dangling": toolerr.OutsideRoot, "loop": toolerr.NotFound,
			"innocent": toolerr.DeniedPath, ".ssh/new": toolerr.DeniedPath, "sub/id_rsa": toolerr.DeniedPath, "key": toolerr.DeniedPath,
			"ro/f": toolerr.ReadOnly, "ro/new": toolerr.ReadOnly, tr.second + "/s.txt": toolerr.ReadOnly, tr.second + "/a/b": toolerr.ReadOnly,
			"fifo": toolerr.SpecialFile, "socket": toolerr.SpecialFile, "dir": toolerr.IsADirectory, ".": toolerr.IsADirectory, "": toolerr.IsADirectory,
			"new/": toolerr.IsADirectory, "a.txt/": toolerr.NotADirectory, "a.txt/b": toolerr.NotADirectory, "none/../x": toolerr.NotFound,
			"x\x00y": toolerr.InvalidParams, strings.Repeat("n", 256): toolerr.InvalidParams,
			".git/hooks/pre-commit": toolerr.DeniedPath, ".GIT/Hooks/new": toolerr.DeniedPath, "h/post-merge": toolerr.DeniedPath,
			".git": toolerr.DeniedPath, ".git/info/attributes": toolerr.DeniedPath, ".git/modules/m/hooks/x": toolerr.DeniedPath,
			".git/worktrees/w/gitdir": toolerr.DeniedPath, "bare.git/hooks/update": toolerr.DeniedPath, "a/b/.envrc": toolerr.DeniedPath,
			".git/index": toolerr.DeniedPath, ".GIT/Index": toolerr.DeniedPath, ".git/sharedindex.0": toolerr.DeniedPath,
			".git/worktrees/w/index": toolerr.DeniedPath, ".git/modules/m/index": toolerr.DeniedPath,
			".claude/settings.json": toolerr.DeniedPath, ".claude/settings.local.json": toolerr.DeniedPath, "a/.mcp.json": toolerr.DeniedPath,
			".codex/config.toml": toolerr.DeniedPath, ".cursor/mcp.json": toolerr.DeniedPath, ".gemini/settings.json": toolerr.DeniedPath, ".vscode/tasks.json": toolerr.DeniedPath,
		} {
			target, err := fs.OpenForWrite(name)
			require.Nil(t, target, name)
			requireCode(t, code, err)
		}
		for _, name := range []string{
			".git/config", ".git/refs/heads/hooks/x", ".git/logs/refs/heads/hooks/x", ".git/worktrees/w/logs/hooks", ".git/refs/heads/index", ".git/info/exclude", "x.git/docs/index", "index", ".github/workflows/x.yml", ".gitignore", ".gitattributes", "hooks/x",
			"CLAUDE.md", "AGENTS.md", "package.json", "Makefile", "vscode/x", ".claude.md", "mise/x", "a.toml", ".config/x", "x.workspace", ".env", "envrc", "none/./x", "dir/../new", "bashrc", ".bashrc", "x.git/config",
		} {
			target, err := fs.OpenForWrite(name)
			require.NoError(t, err, name)
			require.NoError(t, target.Close())
		}
		require.NoDirExists(t, filepath.Join(tr.root, "none"), "nothing is made before Replace")
		require.Equal(t, outsideMark, tr.onDisk(t, "outside/secret.txt"))
		require.NoFileExists(t, filepath.Join(tr.base, "outside/new"))
	})
}

func TestWhatIsProtectedByPlace(t *testing.T) {
	tr := newTree(t)
	home, config, kept := filepath.Join(tr.root, "home"), filepath.Join(tr.root, "config"), filepath.Join(tr.root, "kept")
	require.NoError(t, os.MkdirAll(home, 0o755))
	env := func(name string) string {
		return map[string]string{"HOME": home, "XDG_CONFIG_HOME": config, "MCP_STATE_DIR": filepath.Join(tr.root, "state")}[name]
	}
	paths := []string{
		"home/.bashrc", "home/.profile", "home/.zshenv", "home/.gitconfig", "home/.config/git/config", "home/.config/autostart/x.desktop",
		"home/.local/state/toolroom/x", "config/toolroom/toolroom.yaml", "state/undo-1/x", "kept/x",
	}
	for _, lifted := range []bool{false, true} {
		c := sandbox.Config{Roots: []string{tr.root}, Getenv: env, Protect: []string{kept}, AllowRootDir: true}
		if lifted {
			c.AllowWrites = []string{".bashrc", "home/.profile", "~/.zshenv", ".gitconfig", ".config", "home/.local/**", "config/**", "state", "kept/x"}
		}
		fs, err := sandbox.New(c).FS(context.Background())
		require.NoError(t, err)
		for _, name := range paths {
			target, err := fs.OpenForWrite(name)
			if lifted {
				require.NoError(t, err, name)
				require.NoError(t, target.Close())
				continue
			}
			requireCode(t, toolerr.DeniedPath, err)
			require.ErrorContains(t, err, "--allow-write")
		}
		for _, name := range []string{"home/notes.rc/x", "home/src/.bashrc", "home/README"} {
			target, err := fs.OpenForWrite(name)
			require.NoError(t, err, name)
			require.NoError(t, target.Close())
		}
	}
}

// Links inside the roots are followed: their target is written, the link
// stays. A hard link gets a new inode unless asked otherwise.
func TestReplaceThroughLinks(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.link(t, "dir/b.txt", "root/rel")
		tr.link(t, tr.second+"/s.txt", "root/abs")
		tr.link(t, "dir/made", "root/dangling")
		fs := open(t, box, tr.root, tr.second)
		for link, target := range map[string]string{"rel": "root/dir/b.txt", "abs": "second/s.txt", "dangling": "root/dir/made"} {
			_, err := put(fs, link, "through "+link, sandbox.ReplaceOptions{})
			require.NoError(t, err)
			require.Equal(t, "through "+link, tr.onDisk(t, target))
			info, err := os.Lstat(filepath.Join(tr.root, link))
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&os.ModeSymlink)
		}
		for _, other := range []string{"outside/hard", "root/hard"} {
			require.NoError(t, os.Link(filepath.Join(tr.root, "a.txt"), filepath.Join(tr.base, other)))
		}
		done, err := put(fs, "a.txt", "kept", sandbox.ReplaceOptions{KeepHardlinks: true})
		require.NoError(t, err)
		require.Contains(t, done.InPlace, "hard links")
		require.Equal(t, "kept", tr.onDisk(t, "outside/hard"))
		done, err = put(fs, "a.txt", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 2, done.OtherNames)
		require.Empty(t, done.InPlace)
		require.Equal(t, "kept", tr.onDisk(t, "outside/hard"))
		require.Equal(t, "kept", tr.onDisk(t, "root/hard"))
		require.Equal(t, "new", tr.onDisk(t, "root/a.txt"))
		requireNoLitter(t, tr.base)
	})
}

// Whatever the disk says while the new content is written, the old stays and
// the answer has a code. The quota is only said here: no test sets one.
func TestWhatTheDiskSays(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		for errno, code := range map[syscall.Errno]toolerr.Code{
			syscall.ENOSPC: toolerr.NoSpace, syscall.EDQUOT: toolerr.NoSpace, syscall.EROFS: toolerr.ReadOnly,
			syscall.EFBIG: toolerr.TooLarge, syscall.EIO: toolerr.ExecutionError,
		} {
			for _, name := range []string{"a.txt", "new/file"} {
				target, err := fs.OpenForWrite(name)
				require.NoError(t, err)
				_, err = target.Replace(context.Background(), func(w io.Writer) error {
					_, err := w.Write([]byte("half of it"))
					require.NoError(t, err)
					return &os.PathError{Op: "write", Path: "/somewhere", Err: errno}
				}, sandbox.ReplaceOptions{MakeParents: true})
				requireCode(t, code, err)
				require.ErrorIs(t, err, errno)
				require.NotContains(t, err.Error(), "/somewhere")
				require.NoError(t, target.Close())
			}
		}
		require.Equal(t, "a", tr.onDisk(t, "root/a.txt"))
		require.NoDirExists(t, filepath.Join(tr.root, "new"))
		requireNoLitter(t, tr.base)
	})
}
