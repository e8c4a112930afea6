package sandboxtest

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// CommandRoot is a root with a Runner that runs commands in it.
type CommandRoot struct {
	T      testing.TB
	Root   string
	Runner *proc.Runner
	Rules  proc.Rules

	config proc.Config
}

// MakeDir makes a directory for a CommandRoot and returns its path. It is
// removed after the test, even if commands have removed permissions of
// directories in it.
func MakeDir(t testing.TB) string {
	t.Helper()
	place := mcpkittest.OuterDir(t, "")
	t.Cleanup(func() { openDirs(place) })
	return place
}

// NewCommandRoot makes the root parentDir/root and a Runner with the configuration
// c and, in addition, PATH and a home directory. It skips the test if this
// machine does not enforce c.Level. The Runner is closed after the test.
func NewCommandRoot(t testing.TB, parentDir string, c proc.Config) *CommandRoot {
	t.Helper()
	home := filepath.Join(parentDir, "home")
	c.Environ = append(c.Environ, "PATH="+os.Getenv("PATH"), "HOME="+home)
	b := &CommandRoot{T: t, Root: filepath.Join(parentDir, "root"), config: c}
	for _, dir := range []string{b.Root, home} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	b.ResetRules()
	b.startRunner(c)
	return b
}

// ResetRules sets Rules to those that allow the root. Call it again after Root
// was changed.
func (b *CommandRoot) ResetRules() {
	b.T.Helper()
	box := sandbox.New(sandbox.Config{Roots: []string{b.Root}, AllowWrites: []string{"**"}})
	var err error
	b.Rules, err = box.FS(context.Background())
	require.NoError(b.T, err)
}

// startRunner starts a Runner. It skips the test if the machine does not
// enforce the level.
func (b *CommandRoot) startRunner(c proc.Config) {
	b.T.Helper()
	runner, err := proc.New(c)
	require.NoError(b.T, err)
	b.T.Cleanup(func() { runner.Close() })
	b.Runner = runner
	report, err := runner.SelfTest(context.Background())
	if err != nil || report.Level != c.Level {
		b.T.Skipf("this machine does not have the level %s: %v", c.Level, err)
	}
}

// WithoutUndo replaces the Runner by one that keeps no undo records.
func (b *CommandRoot) WithoutUndo() {
	b.T.Helper()
	b.Runner.Close()
	b.config.UndoDir = ""
	b.startRunner(b.config)
}

// Run runs a script over layers, or without layers in the root itself, and
// waits until all its processes have ended. output is standard output and
// standard error together.
func (b *CommandRoot) Run(script string, layers ...proc.Layer) (result proc.Result, output string) {
	b.T.Helper()
	p, err := b.Runner.Start(context.Background(), proc.Command{Script: script, Dir: b.Root, Rules: b.Rules, Layers: layers})
	require.NoError(b.T, err)
	result = p.Wait()
	<-p.Done()
	text := p.Output().Excerpt(100_000)
	p.Output().Close()
	return result, text.Head + text.Tail
}

// RunOutside runs a script in the root without a sandbox. The test fails if the
// script fails.
func (b *CommandRoot) RunOutside(script string) {
	b.T.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = b.Root
	out, err := cmd.CombinedOutput()
	require.NoError(b.T, err, string(out))
}

// RemoveFiles removes all files from the root, also those in directories that the user
// must not write to.
func (b *CommandRoot) RemoveFiles() {
	b.T.Helper()
	openDirs(b.Root)
	require.NoError(b.T, os.RemoveAll(b.Root))
	require.NoError(b.T, os.MkdirAll(b.Root, 0o755))
}

// openDirs lets the user read and write the directories below root. Otherwise, a plain
// user cannot remove the files of a directory after chmod 500.
func openDirs(root string) {
	filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error { //nolint:errcheck // the removal fails then
		if err == nil && e.IsDir() {
			os.Chmod(path, 0o700) //nolint:errcheck // the removal fails then
		}
		return nil
	})
}
