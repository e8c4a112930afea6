//go:build oracle

package walk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/walk"
)

// output returns the lines that a go command prints.
func output(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

func TestGoDistributionAsRipgrep(t *testing.T) {
	rg := oracle.Path(t, "rg")
	root := output(t, "env", "GOROOT")[0]
	got, _ := collect(t, start(t, root, ".", walk.Options{Hidden: true}), regular)
	require.Equal(t, run(t, root, nil, rg, "--files", "-0", "--hidden", "-g", "!.git"), got)
	require.Greater(t, len(got), 1000)
}

// The dependencies of this module, made into repositories, with added files
// that their ignore files hide.
func TestRealRepositories(t *testing.T) {
	rg, git := oracle.Path(t, "rg"), oracle.Path(t, "git")
	tried := 0
	for _, dir := range output(t, "list", "-m", "-f", "{{.Dir}}", "all") {
		_, errIgnore := os.Stat(filepath.Join(dir, ".gitignore"))
		_, errGit := os.Stat(filepath.Join(dir, ".git"))
		if errIgnore != nil || errGit == nil {
			continue // nothing to compare, or this repository itself
		}
		tried++
		t.Run(filepath.Base(dir), func(t *testing.T) {
			root := t.TempDir()
			copyTree(t, root, dir)
			run(t, root, []string{"HOME=" + root}, git, "init", "-q", "--template=")
			got, _ := collect(t, start(t, root, ".", walk.Options{Hidden: true}), regular)
			require.Equal(t, run(t, root, nil, rg, "--files", "-0", "--hidden", "-g", "!.git"), got)
			require.Equal(t, run(t, root, []string{"HOME=/nowhere"}, git, "ls-files", "-o", "-z", "--exclude-standard"), got)
		})
	}
	require.Greater(t, tried, 3)
}

// copyTree copies the file names of a module and the content of its ignore
// files, and adds files whose names are derived from their patterns.
func copyTree(t *testing.T, to, from string) {
	t.Helper()
	f := files{}
	require.NoError(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		f[filepath.ToSlash(rel)] = ""
		if d.Name() != ".gitignore" {
			return nil
		}
		text, err := os.ReadFile(path)
		f[filepath.ToSlash(rel)] = string(text)
		base := strings.TrimSuffix(filepath.ToSlash(rel), ".gitignore")
		for _, line := range strings.Fields(string(text)) {
			name := strings.NewReplacer("**", "x/y", "*", "zz", "?", "q", "!", "", "[", "", "]", "", "#", "").Replace(line)
			if name = strings.Trim(name, "/"); filepath.IsLocal(name) && name != "." {
				for _, sample := range []string{name + "~file", "deep/er/" + name, "as/dir/" + name + "/f", "exact/" + name} {
					f[base+sample] = ""
				}
			}
		}
		return err
	}))
	for name := range f {
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			delete(f, dir)
		}
	}
	f.write(t, to)
}
