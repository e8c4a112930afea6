package sandbox_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// asRoot skips what only root can set up, and says what was not run.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: needs root to set up owners, mounts or flags")
	}
}

const nobody = 65534

// asNobody runs f without any privilege. Credentials belong to a thread, so
// f must not start goroutines that matter.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	as := func(uid uintptr) {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, math.MaxUint32, uid, math.MaxUint32); errno != 0 {
			panic(errno)
		}
	}
	groups := func(gid uintptr) {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESGID, math.MaxUint32, gid, math.MaxUint32); errno != 0 {
			panic(errno)
		}
	}
	groups(nobody)
	as(nobody)
	defer groups(0)
	defer as(0)
	f()
}

// acl is an access list as the kernel keeps it: owner rwx, one more user,
// group, mask, others.
func acl(user uint32, perm, mask uint16) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, math.MaxUint32}, {2, perm, user}, {4, 4, math.MaxUint32}, {0x10, mask, math.MaxUint32}, {0x20, 0, math.MaxUint32}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

func getAttr(t *testing.T, path, name string) []byte {
	t.Helper()
	buf := make([]byte, 1<<16)
	n, err := unix.Getxattr(path, name, buf)
	if err == unix.ENODATA {
		return nil
	}
	require.NoError(t, err)
	return buf[:n]
}

func TestAttributesAreKept(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		path := filepath.Join(tr.root, "a.txt")
		if err := unix.Setxattr(path, "user.note", []byte("keep"), 0); err != nil {
			t.Skipf("NOT RUN: no extended attributes here: %v", err)
		}
		long := []byte(strings.Repeat("v", 3000))
		require.NoError(t, unix.Setxattr(path, "user.long", long, 0))
		list := acl(12345, 6, 6)
		require.NoError(t, unix.Setxattr(path, "system.posix_acl_access", list, 0))
		before, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, "-rw-rw----", before.Mode().String(), "the group bits are the mask")
		done, err := put(fs, "a.txt", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.Empty(t, done.InPlace)
		require.Empty(t, done.Dropped)
		require.Equal(t, before.Mode(), done.Stat.Mode)
		require.Equal(t, "keep", string(getAttr(t, path, "user.note")))
		require.Equal(t, long, getAttr(t, path, "user.long"))
		require.Equal(t, list, getAttr(t, path, "system.posix_acl_access"))

		// A directory's default list is for new files, not for old ones.
		dir := filepath.Join(tr.root, "dir")
		require.NoError(t, os.Chmod(dir+"/b.txt", 0o604))
		require.NoError(t, unix.Setxattr(dir, "system.posix_acl_default", list, 0))
		done, err = put(fs, "dir/b.txt", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.Equal(t, "-rw----r--", done.Stat.Mode.String())
		require.Nil(t, getAttr(t, dir+"/b.txt", "system.posix_acl_access"))
		_, err = put(fs, "dir/new", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir+"/other", nil, 0o666))
		require.NotNil(t, getAttr(t, dir+"/new", "system.posix_acl_access"))
		require.Equal(t, getAttr(t, dir+"/other", "system.posix_acl_access"), getAttr(t, dir+"/new", "system.posix_acl_access"))
	})
}

func TestOwnerIsKeptAndPrivilegeIsNot(t *testing.T) {
	asRoot(t)
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		path := filepath.Join(tr.root, "a.txt")
		require.NoError(t, os.Chown(path, 1234, 5678))
		require.NoError(t, unix.Chmod(path, 0o6755))
		// cap_net_raw=ep, version 2.
		require.NoError(t, unix.Setxattr(path, "security.capability", []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0))
		done, err := put(fs, "a.txt", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"setuid", "setgid", "file capabilities"}, done.Dropped)
		var st unix.Stat_t
		require.NoError(t, unix.Stat(path, &st))
		require.EqualValues(t, []uint32{1234, 5678, unix.S_IFREG | 0o755}, []uint32{st.Uid, st.Gid, st.Mode})
		require.Nil(t, getAttr(t, path, "security.capability"))
	})
}

// A file that an unprivileged user cannot replace is written in place or refused,
// and keeps its owner and mode.
func TestWithoutPermission(t *testing.T) {
	asRoot(t)
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		base, err := os.MkdirTemp("", "replace")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(base) })
		require.NoError(t, os.Chmod(base, 0o755))
		tr := newTreeIn(t, base)
		own := func(name string, uid int, mode uint32) {
			path := filepath.Join(tr.root, name)
			require.NoError(t, os.Chown(path, uid, uid))
			require.NoError(t, unix.Chmod(path, mode))
		}
		for _, name := range []string{"fixed/f", "fixed/two", "fixed/root", "free/theirs", "free/mine", "free/readonly", "free/unread", "dark/f", "sticky/theirs"} {
			tr.write(t, "root/"+name, "old content")
		}
		require.NoError(t, os.Link(tr.root+"/fixed/two", tr.base+"/outside/two"))
		own("fixed", 0, 0o755)
		own("fixed/f", nobody, 0o644)
		own("fixed/two", nobody, 0o644)
		own("fixed/root", 0, 0o644)
		own("free", nobody, 0o755)
		own("free/theirs", 0, 0o666)
		own("free/mine", nobody, 0o600)
		own("free/readonly", nobody, 0o444)
		own("free/unread", nobody, 0o200)
		own("dark", nobody, 0o300)
		own("dark/f", nobody, 0o644)
		own("sticky", 0, 0o1777)
		own("sticky/theirs", 0, 0o666)

		type result struct {
			done *sandbox.Written
			err  error
		}
		results := map[string]result{}
		fs := open(t, box, tr.root)
		asNobody(t, func() {
			for _, name := range []string{"fixed/f", "fixed/two", "fixed/root", "fixed/new", "fixed/made/new", "free/theirs", "free/mine", "free/readonly", "free/unread", "free/new", "dark/f", "sticky/theirs"} {
				done, err := put(fs, name, "new", sandbox.ReplaceOptions{MakeParents: true})
				results[name] = result{done, err}
			}
		})
		for name, want := range map[string]struct {
			code    toolerr.Code
			inPlace string
		}{
			"fixed/f":   {"", "its directory is not writable"},
			"fixed/two": {toolerr.PermissionDenied, ""}, "fixed/root": {toolerr.PermissionDenied, ""},
			"fixed/new": {toolerr.PermissionDenied, ""}, "fixed/made/new": {toolerr.PermissionDenied, ""},
			"free/theirs": {"", "a new file cannot get its owner and group"},
			"free/mine":   {}, "free/readonly": {toolerr.PermissionDenied, ""}, "free/unread": {}, "free/new": {}, "dark/f": {},
			"sticky/theirs": {"", "a new file cannot get its owner and group"},
		} {
			got := results[name]
			if want.code != "" {
				requireCode(t, want.code, got.err)
				if !strings.Contains(name, "new") {
					require.Equal(t, "old content", tr.onDisk(t, "root/"+name))
				}
				continue
			}
			if name == "dark/f" && strings.HasSuffix(t.Name(), "portable") {
				requireCode(t, toolerr.PermissionDenied, got.err) // os.Root enters no directory it cannot read
				continue
			}
			require.NoError(t, got.err, name)
			require.Equal(t, want.inPlace, got.done.InPlace, name)
			require.Equal(t, "new", tr.onDisk(t, "root/"+name))
		}
		require.ErrorContains(t, results["fixed/two"].err, "--keep-hardlinks")
		require.Equal(t, "old content", tr.onDisk(t, "outside/two"))
		var st unix.Stat_t
		require.NoError(t, unix.Stat(tr.root+"/free/theirs", &st))
		require.EqualValues(t, []uint32{0, 0, unix.S_IFREG | 0o666}, []uint32{st.Uid, st.Gid, st.Mode})
		require.NoError(t, unix.Stat(tr.root+"/free/unread", &st))
		require.EqualValues(t, unix.S_IFREG|0o200, st.Mode)
		requireNoLitter(t, tr.base)
	})
}

// In a directory that this user may not write, files are written in place, and none
// is made.
func TestUnwritableDirectory(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		old := strings.Repeat("old\n", 50_000)
		tr.write(t, "root/dir/b.txt", old)
		dir := filepath.Join(tr.root, "dir")
		run := func(f func()) { f() }
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(dir+"/b.txt", nobody, nobody))
			run = func(f func()) { asNobody(t, f) }
		}
		require.NoError(t, os.Chmod(dir, 0o555))
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
		// Longer, shorter, with the same beginning, empty, and full again.
		for _, content := range []string{old + "new", old[:7] + "x", "other", "", old} {
			var done *sandbox.Written
			var err error
			run(func() { done, err = put(fs, "dir/b.txt", content, sandbox.ReplaceOptions{}) })
			require.NoError(t, err)
			require.Equal(t, "its directory is not writable", done.InPlace)
			require.Equal(t, content, tr.onDisk(t, "root/dir/b.txt"))
			require.EqualValues(t, len(content), done.Stat.Size)
		}
		var err error
		run(func() { _, err = put(fs, "dir/new", "x", sandbox.ReplaceOptions{}) })
		requireCode(t, toolerr.PermissionDenied, err)
		requireNoLitter(t, tr.base)
	})
}

// immutable is FS_IMMUTABLE_FL of <linux/fs.h>.
const immutable = 0x10

// flags sets a file's flags as chattr does, for the length of the test.
func flags(t *testing.T, path string, set int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	old, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(old)|set)
	}
	if err != nil {
		t.Skipf("NOT RUN: no immutable files here: %v", err)
	}
	t.Cleanup(func() {
		if f, err := os.Open(path); err == nil {
			unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(old))
			f.Close()
		}
	})
}

func TestImmutable(t *testing.T) {
	asRoot(t)
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		flags(t, filepath.Join(tr.root, "a.txt"), immutable)
		flags(t, filepath.Join(tr.root, "dir"), immutable)
		_, err := put(fs, "a.txt", "new", sandbox.ReplaceOptions{})
		requireCode(t, toolerr.PermissionDenied, err)
		require.ErrorContains(t, err, "immutable")
		require.Equal(t, "a", tr.onDisk(t, "root/a.txt"))
		_, err = put(fs, "dir/new", "new", sandbox.ReplaceOptions{})
		requireCode(t, toolerr.PermissionDenied, err)
		done, err := put(fs, "dir/b.txt", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.Contains(t, done.InPlace, "directory")
		requireNoLitter(t, tr.base)
	})
}

// mount mounts a small file system in memory for the length of the test.
func mount(t *testing.T, at, options string) {
	t.Helper()
	asRoot(t)
	require.NoError(t, os.MkdirAll(at, 0o755))
	if err := unix.Mount("none", at, "tmpfs", 0, options); err != nil {
		t.Skipf("NOT RUN: cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(at, unix.MNT_DETACH)) })
}

func TestFullDisk(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		mount(t, filepath.Join(tr.root, "small"), "size=1m,nr_inodes=20")
		old := strings.Repeat("old line\n", 60_000) // 540 kB of 1 MiB
		tr.write(t, "root/small/f", old)
		fs := open(t, box, tr.root)
		big := strings.Repeat("new line\n", 70_000)
		_, err := put(fs, "small/f", big, sandbox.ReplaceOptions{})
		requireCode(t, toolerr.NoSpace, err)
		require.Equal(t, old, tr.onDisk(t, "root/small/f"))
		_, err = put(fs, "small/deep/er/new", big+big, sandbox.ReplaceOptions{MakeParents: true})
		requireCode(t, toolerr.NoSpace, err)
		require.NoDirExists(t, filepath.Join(tr.root, "small/deep"))
		require.NoError(t, os.Link(tr.root+"/small/f", tr.root+"/small/g"))
		_, err = put(fs, "small/f", big+big, sandbox.ReplaceOptions{KeepHardlinks: true})
		requireCode(t, toolerr.NoSpace, err)
		require.Equal(t, old, tr.onDisk(t, "root/small/f"))
		done, err := put(fs, "small/f", big, sandbox.ReplaceOptions{KeepHardlinks: true})
		require.NoError(t, err, "in place it fits")
		require.NotEmpty(t, done.InPlace)
		require.Equal(t, big, tr.onDisk(t, "root/small/g"))
		// No inode is left either.
		for i := range 20 {
			os.WriteFile(fmt.Sprintf("%s/small/n%d", tr.root, i), nil, 0o644)
		}
		_, err = put(fs, "small/one more", "x", sandbox.ReplaceOptions{})
		requireCode(t, toolerr.NoSpace, err)
		requireNoLitter(t, tr.base)
	})
}

func TestReadOnlyFileSystem(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		at := filepath.Join(tr.root, "fixed")
		mount(t, at, "")
		tr.write(t, "root/fixed/f", "old")
		require.NoError(t, unix.Mount("none", at, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		fs := open(t, box, tr.root)
		for _, name := range []string{"fixed/f", "fixed/new", "fixed/a/b"} {
			_, err := put(fs, name, "new", sandbox.ReplaceOptions{MakeParents: true})
			requireCode(t, toolerr.ReadOnly, err)
		}
		require.Equal(t, "old", tr.onDisk(t, "root/fixed/f"))
	})
}

// A file that is a mount point, as containers have them, keeps its inode.
func TestMountedFile(t *testing.T) {
	asRoot(t)
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		path := filepath.Join(tr.root, "a.txt")
		if err := unix.Mount(tr.second+"/s.txt", path, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("NOT RUN: cannot bind a file: %v", err)
		}
		t.Cleanup(func() { require.NoError(t, unix.Unmount(path, unix.MNT_DETACH)) })
		fs := open(t, box, tr.root)
		for _, content := range []string{"longer than before", "short"} {
			done, err := put(fs, "a.txt", content, sandbox.ReplaceOptions{})
			require.NoError(t, err)
			require.Equal(t, "it is a mount point", done.InPlace)
			require.Equal(t, content, tr.onDisk(t, "second/s.txt"))
		}
		requireNoLitter(t, tr.base)
	})
}

func TestRunningProgram(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		sleep, err := exec.LookPath("sleep")
		if err != nil {
			t.Skip("NOT RUN: no program sleep")
		}
		program, err := os.ReadFile(sleep)
		require.NoError(t, err)
		tr := newTree(t)
		path := filepath.Join(tr.root, "sleep")
		require.NoError(t, os.WriteFile(path, program, 0o755))
		require.NoError(t, os.Link(path, path+"2"))
		cmd := exec.Command(path, "600")
		require.NoError(t, cmd.Start())
		defer cmd.Wait()
		defer cmd.Process.Kill()
		fs := open(t, box, tr.root)
		_, err = put(fs, "sleep", "new", sandbox.ReplaceOptions{KeepHardlinks: true})
		requireCode(t, toolerr.PermissionDenied, err)
		require.ErrorContains(t, err, "running")
		require.Equal(t, string(program), tr.onDisk(t, "root/sleep"))
		done, err := put(fs, "sleep", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.Empty(t, done.InPlace)
		require.Equal(t, string(program), tr.onDisk(t, "root/sleep2"))
	})
}

// A write over the limit for file sizes fails, and no signal kills the process. A
// write in place is undone. The test needs a process with the limit, because the
// limit would also hold for the output of go test.
func TestFileSizeLimit(t *testing.T) {
	if os.Getenv("SANDBOX_TEST_LIMITED") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$", "-test.v")
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_LIMITED=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: TestFileSizeLimit", string(out))
		return
	}
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		old := strings.Repeat("old\n", 1000)
		tr.write(t, "root/f", old)
		require.NoError(t, os.Link(tr.root+"/f", tr.root+"/g"))
		fs := open(t, box, tr.root)
		var limit unix.Rlimit
		require.NoError(t, unix.Prlimit(0, unix.RLIMIT_FSIZE, nil, &limit))
		low := unix.Rlimit{Cur: 64 << 10, Max: limit.Max}
		for _, keep := range []bool{false, true} {
			require.NoError(t, unix.Prlimit(0, unix.RLIMIT_FSIZE, &low, nil))
			_, err := put(fs, "f", strings.Repeat("new\n", 100_000), sandbox.ReplaceOptions{KeepHardlinks: keep})
			require.NoError(t, unix.Prlimit(0, unix.RLIMIT_FSIZE, &limit, nil))
			requireCode(t, toolerr.TooLarge, err)
			require.Equal(t, old, tr.onDisk(t, "root/f"))
		}
		requireNoLitter(t, tr.base)
	})
}

// No write, whatever comes of it, leaves a descriptor behind.
func TestReplaceLeaksNoDescriptor(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := attackTree(t)
		fs := open(t, box, tr.root, tr.second)
		round := func() {
			for _, c := range attacks {
				target, err := fs.OpenForWrite(strings.ReplaceAll(c.name, "BASE", tr.base))
				if err != nil {
					continue
				}
				release, err := target.LockFile(context.Background())
				require.NoError(t, err)
				release()
				target.Replace(context.Background(), func(io.Writer) error { return io.ErrUnexpectedEOF }, sandbox.ReplaceOptions{MakeParents: true})
				require.NoError(t, target.Close())
			}
			_, err := put(fs, "x/y/z", "new", sandbox.ReplaceOptions{MakeParents: true})
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(filepath.Join(tr.root, "x")))
		}
		round()
		before, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		round()
		after, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		require.LessOrEqual(t, len(after), len(before))
	})
}

// theirs runs f as another user.
func theirs(t *testing.T, f func()) { asNobody(t, f) }

// The sticky bit gives nobody anything, and stays.
func TestStickyIsKept(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		path := filepath.Join(tr.root, "a.txt")
		require.NoError(t, unix.Chmod(path, 0o1640))
		done, err := put(open(t, box, tr.root), "a.txt", "new", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.Empty(t, done.Dropped)
		var st unix.Stat_t
		require.NoError(t, unix.Stat(path, &st))
		require.EqualValues(t, unix.S_IFREG|0o1640, st.Mode)
	})
}

// Writing in place gives no new content the rights of the old one either, and
// says so; where it fails, the file is as it was.
func TestPrivilegeInPlace(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		at := filepath.Join(tr.root, "small")
		if os.Geteuid() == 0 {
			mount(t, at, "size=1m")
		} else {
			require.NoError(t, os.Mkdir(at, 0o755))
		}
		tr.write(t, "root/small/f", "old")
		require.NoError(t, os.Link(at+"/f", at+"/g"))
		require.NoError(t, unix.Chmod(at+"/f", 0o6755))
		fs := open(t, box, tr.root)
		mode := func() uint32 {
			var st unix.Stat_t
			require.NoError(t, unix.Stat(at+"/g", &st))
			return st.Mode &^ unix.S_IFREG
		}
		if os.Geteuid() == 0 {
			_, err := put(fs, "small/f", strings.Repeat("too much", 1<<18), sandbox.ReplaceOptions{KeepHardlinks: true})
			requireCode(t, toolerr.NoSpace, err)
			require.EqualValues(t, 0o6755, mode())
		}
		done, err := put(fs, "small/f", "new content", sandbox.ReplaceOptions{KeepHardlinks: true})
		require.NoError(t, err)
		require.Equal(t, []string{"setuid", "setgid"}, done.Dropped)
		require.NotEmpty(t, done.InPlace)
		require.EqualValues(t, 0o755, mode())
		require.Equal(t, "new content", tr.onDisk(t, "root/small/g"))
	})
}
