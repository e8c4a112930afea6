package dirtree

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// TestMain lets the test binary act as a git that never answers.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "git" {
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func TestParseStatus(t *testing.T) {
	out := "M  src/a.go\x00 M src/b.go\x00A  src/new\nline\x00?? src/un/\x00?? other\x00UU src/c\x00 D src/gone\x00AM src/d\x00 A src/e\x00 T src/f\x00x\x00"
	s := parseStatus([]byte(out), "src")
	for name, want := range map[string]byte{
		"a.go": 'M', "b.go": 'M', "new\nline": 'A', "un": '?', "un/deep/file": '?', "c": 'U', "d": 'A', "e": 'A', "f": 'T',
		"gone": 0, "other": 0, "unx": 0,
	} {
		require.Equal(t, string(want), string(s.letterFor(name)), name)
	}
	top := parseStatus([]byte(out), ".")
	require.Equal(t, byte('M'), top.letterFor("src/a.go"))
	require.Equal(t, byte('?'), top.letterFor("other"))

	within := parseStatus([]byte("?? new/\x00"), "new/sub")
	require.Equal(t, byte('?'), within.letterFor("anything"), "below an untracked directory all is untracked")
	require.Zero(t, gitStatuses(nil).letterFor("a"))
}

func TestFiltersAreEmptied(t *testing.T) {
	env, err := envDisablingFilters([]byte("filter.lfs.clean\x00filter.a=b.process\x00filter.lfs.required\x00"))
	require.NoError(t, err)
	require.Equal(t, []string{
		"GIT_CONFIG_KEY_0=filter.lfs.clean", "GIT_CONFIG_VALUE_0=",
		"GIT_CONFIG_KEY_1=filter.a=b.process", "GIT_CONFIG_VALUE_1=",
		"GIT_CONFIG_KEY_2=filter.lfs.required", "GIT_CONFIG_VALUE_2=false",
		"GIT_CONFIG_COUNT=3",
	}, env)
}

// fakeGit installs a program called git in dir.
func fakeGit(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(self)
	require.NoError(t, err)
	for _, name := range []string{"git", "git.exe"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o755))
	}
}

func TestGitIsNotTakenFromAWritableRoot(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	fakeGit(t, bin)
	_, ok := findGit(bin, nil)
	require.True(t, ok)
	_, ok = findGit(bin, []sandbox.Root{{Path: dir, ReadOnly: true}})
	require.True(t, ok)
	_, ok = findGit(bin, []sandbox.Root{{Path: dir}})
	require.False(t, ok, "in a root")

	outside := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(bin, outside))
	_, ok = findGit(outside, []sandbox.Root{{Path: dir}})
	require.False(t, ok, "a link into a root")

	t.Chdir(dir)
	_, ok = findGit("bin"+string(os.PathListSeparator)+"."+string(os.PathListSeparator), nil)
	require.False(t, ok, "relative")
}

// TestSilentGit: with a git that does not answer, the listing has no status
// letters and waits only as long as allowed.
func TestSilentGit(t *testing.T) {
	bin, root := t.TempDir(), t.TempDir()
	fakeGit(t, bin)
	t.Setenv("PATH", bin)
	require.NoError(t, os.Mkdir(filepath.Join(root, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a"), nil, 0o644))
	box, err := sandbox.New(sandbox.Config{Roots: []string{root}}).FS(t.Context())
	require.NoError(t, err)
	r, err := Tree(t.Context(), box, ".", Options{GitWait: 20 * time.Millisecond})
	require.NoError(t, err)
	require.False(t, r.GitAnswered)
	require.Len(t, r.Rows, 1)
}

func TestNoWorkTreeNoGit(t *testing.T) {
	_, ok := workTreeTop(filepath.Join(t.TempDir(), "a"))
	require.False(t, ok)
}
