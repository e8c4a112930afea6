//go:build oracle

package dirtree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/dirtree"
)

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(oracle.Path(t, "git"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// repository creates a work tree with one file in every state.
func repository(t *testing.T) string {
	root := tree(t, map[string]string{"same": "1\n", "sub/changed": "1\n", "sub/staged": "1\n", "gone": "1\n"})
	git(t, root, "init", "-q")
	git(t, root, "add", ".")
	git(t, root, "commit", "-qm", "x")
	for name, text := range map[string]string{
		"sub/changed": "22\n", "sub/staged": "22\n", "added": "x\n", "new/file": "", "new/deep/file": "", "sub/untracked\n": "",
	} {
		full := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
	}
	git(t, root, "add", "added", "sub/staged")
	require.NoError(t, os.Remove(filepath.Join(root, "gone")))
	return root
}

func letters(r *dirtree.Result) map[string]string {
	found := map[string]string{}
	for _, row := range r.Rows {
		if row.Git != "" {
			found[row.Path] = row.Git
		}
	}
	return found
}

func TestGitLetters(t *testing.T) {
	root := repository(t)
	patient := dirtree.Options{Depth: 5, GitWait: time.Minute}
	r := list(t, root, "", patient)
	require.True(t, r.GitAnswered)
	require.Equal(t, map[string]string{
		"sub/changed": "M", "sub/staged": "M", "added": "A", "new": "?", "new/file": "?", "new/deep": "?", "new/deep/file": "?",
		`sub/untracked\n`: "?",
	}, letters(r))
	require.Equal(t, map[string]string{"sub/changed": "M", "sub/staged": "M", `sub/untracked\n`: "?"}, letters(list(t, root, "sub", patient)))
	require.Equal(t, map[string]string{"new/deep/file": "?"}, letters(list(t, root, "new/deep", patient)))
	require.Equal(t, map[string]string{"sub/changed": "M"}, letters(list(t, root, "sub/changed", patient)))
	require.Equal(t, map[string]string{"changed": "M", "staged": "M", `untracked\n`: "?"}, letters(list(t, filepath.Join(root, "sub"), "", patient)),
		"the root may be a part of the work tree")
}

// TestRepositoryRunsNothing: a listing runs none of the programs that a
// repository's configuration and hooks name.
func TestRepositoryRunsNothing(t *testing.T) {
	root := repository(t)
	proof := filepath.Join(t.TempDir(), "proof")
	script := filepath.Join(t.TempDir(), "evil")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\ntouch "+proof+"\ncat\n"), 0o755))
	for _, key := range []string{"core.fsmonitor", "filter.evil.clean", "filter.evil.process", "filter.a=b.clean", "core.pager", "diff.external"} {
		git(t, root, "config", key, script)
	}
	git(t, root, "config", "filter.evil.required", "true")
	require.NoError(t, os.WriteFile(filepath.Join(root, ".gitattributes"), []byte("* filter=evil\nsub/* filter=a=b\n"), 0o644))
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, ".git", "hooks"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, ".git", "hooks", hook), []byte("#!/bin/sh\ntouch "+proof+"\n"), 0o755))
	}
	index, err := os.ReadFile(filepath.Join(root, ".git", "index"))
	require.NoError(t, err)
	later := time.Now().Add(time.Hour) // so that git compares the files' content
	for _, name := range []string{"same", "sub/changed"} {
		require.NoError(t, os.Chtimes(filepath.Join(root, name), later, later))
	}
	r := list(t, root, "", dirtree.Options{Depth: 5, GitWait: time.Minute})
	require.True(t, r.GitAnswered)
	require.Equal(t, "M", letters(r)["sub/changed"])
	require.NoFileExists(t, proof)
	after, err := os.ReadFile(filepath.Join(root, ".git", "index"))
	require.NoError(t, err)
	require.Equal(t, index, after, "a listing writes nothing")

	trap := exec.Command(oracle.Path(t, "git"), "status")
	trap.Dir = root
	out, _ := trap.CombinedOutput() // the repository's filter may make it fail
	t.Logf("%s", out)
	require.FileExists(t, proof, "the trap is a real one")
}

func TestRootIsListedAsGitAndFindSee(t *testing.T) {
	root := repository(t)
	require.NoError(t, os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.o\n/out/\n"), 0o644))
	for _, name := range []string{"a.o", "out/x", "sub/b.o", "sub/out/y"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o644))
	}
	want := map[string]bool{}
	for name := range strings.SplitSeq(git(t, root, "ls-files", "-z", "-co", "--exclude-standard"), "\x00") {
		if name != "" && name != "gone" {
			want[strings.ReplaceAll(name, "\n", `\n`)] = true
		}
	}
	got := map[string]bool{}
	for _, row := range list(t, root, "", dirtree.Options{Depth: 20}).Rows {
		if row.Type == "file" {
			got[row.Path] = true
		}
	}
	require.Equal(t, want, got)
}
