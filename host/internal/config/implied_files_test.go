//go:build unix

package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files that a command runs by way of a shell, of env or of another
// directory are found.
func TestImplied(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", filepath.Join(dir, "home"))
	write := func(name string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
		require.NoError(t, os.Chmod(path, mode))
	}
	for _, name := range []string{"tools/run", "tools/more/deep", "home/mine", "top"} {
		write(name, 0o755)
	}
	for _, name := range []string{"tools/data", "tools/package.json", "other/package.json", "tools/app/__main__.py"} {
		write(name, 0o644)
	}
	for _, c := range []struct {
		command []string
		found   string
		not     string
	}{
		{[]string{"sh", "-c", "cd tools && ./run"}, "tools/run", "tools/data"},
		{[]string{"bash", "-ec", "cd tools; cd more; exec ./deep x"}, "tools/more/deep", ""},
		{[]string{"sh", "-c", `"$PWD"/tools/run`}, "tools/run", ""},
		{[]string{"sh", "-c", `$PWD/tools/run; "${PWD}/top"`}, "tools/run top", ""},
		{[]string{"sh", "-c", `$(git rev-parse --show-toplevel)/tools/run`}, "tools/run", ""},
		{[]string{"sh", "-c", `D=tools; $D/run`}, "tools/run", ""},
		{[]string{"sh", "-c", `X=run; tools/$X`}, "tools/run", ""},
		{[]string{"sh", "-c", `tools/{run,data}`}, "tools/run", "tools/data"},
		{[]string{"sh", "-c", `tools/r*n`}, "tools/run", "tools/data"},
		{[]string{"sh", "-c", `~/mine; cat tools/data`}, "home/mine", "tools/data"},
		{[]string{"sh", "-c", `"$HOME/mine"`}, "home/mine", ""},
		{[]string{"env", "-C", "tools", "./run"}, "tools/run", "tools/data"},
		{[]string{"env", "--chdir=tools", "./run"}, "tools/run", ""},
		{[]string{"env", "-S", "tools/run x"}, "tools/run", ""},
		{[]string{"env", "-Stools/run x"}, "tools/run", ""},
		{[]string{"env", "-vS", "-C tools ./run"}, "tools/run", ""},
		{[]string{"env", "--split-string=tools/run x"}, "tools/run", ""},
		{[]string{"sh", "-c", "make -C tools && ./top"}, "tools/Makefile Makefile top", "other/Makefile"},
		{[]string{"npm", "--prefix", "tools", "test", "other"}, "tools/package.json package.json", "other/Makefile"},
		{[]string{"sh", "-c", "cd tools && python3 -m app"}, "tools/app/__main__.py", ""},
		{[]string{"sh", "-c", "echo top; cat data"}, "top", "data"},
		{[]string{"sh"}, "", "top"},
	} {
		found := filesOfCommand(c.command, dir)
		for name := range strings.FieldsSeq(c.found) {
			require.Contains(t, found, filepath.Join(dir, name), "%q", c.command)
		}
		require.False(t, c.not != "" && slices.Contains(found, filepath.Join(dir, c.not)), "%q", c.command)
	}
	require.Empty(t, filesOfCommand(nil, dir))
}
