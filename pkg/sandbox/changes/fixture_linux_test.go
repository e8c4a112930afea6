package changes_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

func TestMain(m *testing.M) {
	proc.Init()
	if os.Getenv(actEnv) != "" {
		if err := act(os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bench is a root with a store of changes and what runs commands over it.
type bench struct {
	t      testing.TB
	root   string
	store  *changes.Store
	dir    string // of the store
	runner *proc.Runner
	rules  proc.Rules
}

// newBench makes a bench. The test is skipped where this machine has no user
// namespaces.
func newBench(t testing.TB) *bench {
	t.Helper()
	place := mcpkittest.OuterDir(t, "")
	t.Cleanup(func() { exec.Command("chmod", "-R", "u+rwx", place).Run() }) //nolint:errcheck // directories of overlayfs have no mode
	b := &bench{t: t, root: filepath.Join(place, "root"), dir: filepath.Join(place, "state", "changes")}
	require.NoError(t, os.MkdirAll(b.root, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(place, "home"), 0o755))
	b.store = changes.New(b.dir)
	var err error
	b.runner, err = proc.New(proc.Config{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(place, "home")}, Hidden: []string{filepath.Join(place, "state")}})
	require.NoError(t, err)
	t.Cleanup(func() { b.runner.Close() })
	box := sandbox.New(sandbox.Config{Roots: []string{b.root}, AllowWrites: []string{"**"}})
	b.rules, err = box.FS(context.Background())
	require.NoError(t, err)
	report, err := b.runner.SelfTest(context.Background())
	require.NoError(t, err)
	if report.Level != proc.L2 {
		t.Skip("this machine has no user namespaces")
	}
	return b
}

// run runs a script over a layer of set, or in the root itself if set is nil.
func (b *bench) run(set *changes.Set, script string) (output string) {
	b.t.Helper()
	command := proc.Command{Script: script, Dir: b.root, Rules: b.rules}
	var layer *changes.Layer
	if set != nil {
		var err error
		layer, err = set.Begin(script)
		require.NoError(b.t, err)
		for _, m := range layer.Mounts() {
			command.Layers = append(command.Layers, proc.Layer(m))
		}
	}
	p, err := b.runner.Start(context.Background(), command)
	require.NoError(b.t, err)
	<-p.Done()
	p.Wait()
	text := p.Output().Excerpt(100_000)
	p.Output().Close()
	if layer != nil {
		require.NoError(b.t, layer.End())
	}
	return text.Head + text.Tail
}

// asPlainUser runs tests of this binary again as a user without rights.
func asPlainUser(t *testing.T, names string) {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(plainEnv) != "" {
		t.Skip("the tests themselves run as a plain user")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	dir := mcpkittest.OuterDir(t, "/srv")
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(self)
	require.NoError(t, err)
	program, work := filepath.Join(dir, "test"), filepath.Join(dir, "work")
	require.NoError(t, os.WriteFile(program, text, 0o755))
	require.NoError(t, os.Mkdir(work, 0o777))
	require.NoError(t, os.Chown(work, 65534, 65534))
	if err := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x", work).Run(); err != nil {
		t.Skip("no other user can enter " + dir)
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "-test.v", "-test.run", names)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), plainEnv+"=1", "HOME="+work, "XDG_CACHE_HOME="+work, "TMPDIR="+work)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	t.Logf("%s", out)
}

const plainEnv = "CHANGES_TEST_PLAIN"

// state describes a tree, line by line: type, mode, time, content or target,
// and which names are the same file.
func state(t testing.TB, root string, times bool) string {
	t.Helper()
	var lines []string
	inodes := map[uint64]string{}
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		line := fmt.Sprintf("%s %v", rel, info.Mode())
		stat := info.Sys().(*syscall.Stat_t)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(name)
			line += " -> " + target
		case info.Mode().IsRegular():
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %x", len(content), sha256.Sum256(content))
			if stat.Nlink > 1 {
				if first, ok := inodes[stat.Ino]; ok {
					line += " same as " + first
				} else {
					inodes[stat.Ino] = rel
				}
			}
		}
		if times {
			line += info.ModTime().UTC().Format(" 15:04:05.000000000")
		}
		lines = append(lines, line)
		return nil
	}))
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// summary is a list of changes without the ones that only touch.
func summary(list []changes.Change) string {
	var all []string
	for _, c := range list {
		if c.Shown() {
			all = append(all, string(c.Kind)+" "+c.Path)
		}
	}
	return strings.Join(all, ", ")
}
