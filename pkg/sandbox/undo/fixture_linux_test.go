package undo_test

import (
	"context"
	"crypto/sha256"
	"errors"
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
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/undo"
)

func TestMain(m *testing.M) {
	proc.Init()
	os.Exit(m.Run())
}

// bench is a root whose commands are recorded.
type bench struct {
	t      testing.TB
	root   string
	store  *undo.Store
	dir    string // of the store
	runner *proc.Runner
	rules  proc.Rules

	level   proc.Level
	environ []string
}

// newBench makes a bench; the test is skipped where this machine does not have the
// level.
func newBench(t testing.TB, level proc.Level) *bench {
	t.Helper()
	at := mcpkittest.OuterDir(t, "")
	return benchIn(t, level, at, filepath.Join(at, "state", "commands"))
}

func benchIn(t testing.TB, level proc.Level, at, dir string) *bench {
	t.Helper()
	b := &bench{t: t, root: filepath.Join(at, "root"), dir: dir, level: level}
	b.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(at, "home"), "GOMODCACHE=" + os.Getenv("UNDO_COST_MODULES")}
	for _, name := range []string{b.root, filepath.Join(at, "home"), b.dir} {
		require.NoError(t, os.MkdirAll(name, 0o755))
	}
	b.store = undo.New(b.dir)
	var err error
	b.runner, err = proc.New(proc.Config{
		Level: level, Environ: b.environ,
		Hidden: []string{filepath.Dir(dir)}, UndoDir: b.dir,
	})
	require.NoError(t, err)
	t.Cleanup(func() { b.runner.Close() })
	box := sandbox.New(sandbox.Config{Roots: []string{b.root}, AllowWrites: []string{"**"}})
	b.rules, err = box.FS(context.Background())
	require.NoError(t, err)
	if _, err := b.runner.SelfTest(context.Background()); err != nil {
		t.Skip(err)
	}
	return b
}

// run runs a script and returns the id of its record and what it printed.
func (b *bench) run(script string) (id, output string) {
	b.t.Helper()
	p, err := b.runner.Start(context.Background(), proc.Command{Script: script, Dir: b.root, Rules: b.rules})
	require.NoError(b.t, err)
	result := p.Wait()
	text := p.Output().Excerpt(100_000)
	p.Output().Close()
	return result.Undo, text.Head + text.Tail
}

// undo takes a command back.
func (b *bench) undo(id string) undo.Report {
	b.t.Helper()
	record, err := b.store.Open(id)
	require.NoError(b.t, err)
	report, err := record.Undo(nil)
	require.NoError(b.t, err)
	return report
}

// fresh empties the root.
func (b *bench) fresh() {
	require.NoError(b.t, os.RemoveAll(b.root))
	require.NoError(b.t, os.MkdirAll(b.root, 0o755))
}

// state describes a tree, line by line: type, mode, owner, time, content or target,
// and which names are the same file.
func state(t testing.TB, root string) string {
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
		stat := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%s %v %d:%d %d.%09d", rel, info.Mode(), stat.Uid, stat.Gid, stat.Mtim.Sec, stat.Mtim.Nsec)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(name)
			line += " -> " + target
		case info.Mode().IsRegular():
			content, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrPermission) {
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
		lines = append(lines, line)
		return nil
	}))
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func (b *bench) runOutside(script string) {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	require.NoError(b.t, err, string(out))
}

func (b *bench) du(id string) (size int64, err error) {
	err = filepath.WalkDir(filepath.Join(b.dir, id), func(_ string, e fs.DirEntry, err error) error {
		if info, infoErr := e.Info(); infoErr == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
