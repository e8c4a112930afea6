//go:build unix

package sandbox_test

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestSystemRootsAreRefused(t *testing.T) {
	d := dirs(t, "links")
	refused := []string{"/", "//", "/etc", "/etc/", "/dev", "/tmp/..", "/etc/../etc"}
	for _, dir := range []string{"/proc", "/sys", "/proc/self", "/proc/1", "/sys/kernel", "/dev/pts", "/dev/fd"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			refused = append(refused, dir)
		}
	}
	for i, dir := range refused {
		link := filepath.Join(d[0], string(rune('a'+i)))
		require.NoError(t, os.Symlink(dir, link))
		for _, given := range []string{dir, link, dir + ":ro"} {
			_, err := rootsOf(t, sandbox.Config{Roots: []string{given}})
			requireCode(t, toolerr.RootRefused, err)
			require.ErrorContains(t, err, "--allow-root-dir")
		}
	}
	if account, err := user.Current(); err == nil && account.HomeDir != "/" {
		// The user database knows the home directory without the variable,
		// and whatever the variable says.
		_, err = rootsOf(t, sandbox.Config{Roots: []string{account.HomeDir}})
		require.Error(t, err)
	}
}

// Who insists on / still gets files only: not what proc, sysfs and /dev
// show, by name, by a link, or through a directory.
func TestPseudoFileSystemsInsideARoot(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		for name, target := range map[string]string{"environ": "/proc/self/environ", "cwd": "/proc/self/cwd", "exe": "/proc/self/exe", "null": "/dev/null", "fd": "/dev/fd/0", "rel": "../../../../../../../../../../proc/version"} {
			tr.link(t, target, "root/"+name)
		}
		fs, err := box(sandbox.Config{Roots: []string{"/", tr.root}, AllowRootDir: true, Getenv: noEnv}).FS(context.Background())
		require.NoError(t, err)
		content, err := read(t, fs, filepath.Join(tr.root, "a.txt"))
		require.NoError(t, err)
		require.Equal(t, "a", content)
		content, err = read(t, fs, "../.."+tr.root+"/a.txt")
		require.NoError(t, err, "above / is /")
		require.Equal(t, "a", content)
		if _, err := os.Stat("/proc/self/environ"); err != nil {
			return // no proc on this system
		}
		for _, name := range []string{"proc/self/environ", "/proc/version", "/proc/self/root/etc/passwd", "/proc/self/cwd/go.mod", "/proc/thread-self/comm",
			"sys/kernel/uevent_seqnum", tr.root + "/environ", tr.root + "/cwd/export_test.go", tr.root + "/exe", tr.root + "/null", tr.root + "/fd", tr.root + "/rel"} {
			_, err := fs.Open(name)
			requireCode(t, toolerr.SpecialFile, err)
		}
		for _, name := range []string{"proc", "/proc/self", "/sys", "/proc/self/fd", "/proc/self/cwd", tr.root + "/cwd"} {
			_, err := fs.OpenDir(name)
			requireCode(t, toolerr.SpecialFile, err)
		}
	})
}
