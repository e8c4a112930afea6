//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestWhatMustNotBeWrittenIsTakenBack: a forbidden write is reverted if the
// kernel cannot refuse it.
func TestWhatMustNotBeWrittenIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		s := newScene(t)
		r := s.runner(t, level)
		for name, c := range map[string]struct {
			script string
			file   string // name in the root
			want   string // its content afterwards; "" if it must not exist
			taken  bool
		}{
			"settings that run programs": {`echo '[core]
fsmonitor = evil' >> .git/config`, ".git/config", "[core]\n", true},
			"an alias":               {`printf '[alias]\n x = !evil\n' > .git/config`, ".git/config", "[core]\n", true},
			"settings as a link":     {`rm .git/config; ln -s ../sub/config .git/config`, ".git/config", "[core]\n", true},
			"settings as a fifo":     {`rm .git/config; mkfifo .git/config`, ".git/config", "[core]\n", true},
			"a remote":               {`printf '[remote "o"]\n url = https://example.com\n' >> .git/config`, ".git/config", "[core]\n[remote \"o\"]\n url = https://example.com\n", false},
			"new agent's settings":   {`mkdir .gemini; echo '{}' > .gemini/settings.json`, ".gemini/settings.json", "", true},
			"new editor's tasks":     {`mkdir .vscode; echo '{}' > .vscode/tasks.json`, ".vscode/tasks.json", "", true},
			"other editor settings":  {`mkdir .vscode; echo '{}' > .vscode/settings.json`, ".vscode/settings.json", "", true},
			"a hook":                 {`echo evil > .git/hooks/pre-commit`, ".git/hooks/pre-commit", "#!/bin/sh\n", level == proc.L1},
			"agent's settings":       {`echo evil > .claude/settings.json`, ".claude/settings.json", "{}\n", level == proc.L1},
			"agent's settings gone":  {`rm -rf .claude`, ".claude/settings.json", "{}\n", level == proc.L1},
			"a new repository":       {`mkdir -p n/.git/hooks; echo x > n/.git/hooks/x`, "n/.git/hooks/x", "x\n", false},
			"another common part":    {`cp -r .git evil; echo ../evil > .git/commondir`, ".git/commondir", "", true},
			"a worktree's settings":  {`printf '[core]\nfsmonitor = evil\n' > .git/config.worktree`, ".git/config.worktree", "", true},
			"a sparse checkout":      {`printf '[core]\nsparseCheckout = true\n' > .git/config.worktree`, ".git/config.worktree", "[core]\nsparseCheckout = true\n", false},
			"a new hook":             {`echo evil > .git/hooks/post-checkout; :`, ".git/hooks/post-checkout", "", level == proc.L1},
			"hooks of a bare one":    {`echo evil > bare.git/hooks/post-receive`, "bare.git/hooks/post-receive", "", level == proc.L1},
			"hooks where none were":  {`mkdir plain/.git/hooks; echo evil > plain/.git/hooks/x`, "plain/.git/hooks/x", "", true},
			"settings of a bare one": {`printf '[core]\nhooksPath = ../evil\n' >> bare.git/config`, "bare.git/config", "[core]\n", true},
			"nothing":                {`true`, ".git/config", "[core]\n", false},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				defer s.reset(t)
				result, _ := run(t, r, s.command(c.script))
				file := filepath.Join(s.dir, "root", c.file)
				text, err := os.ReadFile(file)
				if c.want == "" {
					require.ErrorIs(t, err, os.ErrNotExist)
				} else {
					require.NoError(t, err)
					require.Equal(t, c.want, string(text))
				}
				if c.taken {
					require.Len(t, result.Reverted, 1)
					require.True(t, file == result.Reverted[0] || filepath.Dir(file) == result.Reverted[0], result.Reverted)
				} else {
					require.Empty(t, result.Reverted)
				}
			})
		}
	}
}

// TestTakingBackStaysInTheRoot: a link left by the command does not make the
// revert change a file outside the root.
func TestTakingBackStaysInTheRoot(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		s := newScene(t)
		precious := filepath.Join(s.dir, "outside", "settings.json")
		require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o644))
		confined(t, level, s, `ln -s $OUT .gemini; ln -s $OUT/settings.json .mcp.json; rm -rf .claude && ln -s $OUT .claude`)
		text, err := os.ReadFile(filepath.Join(s.dir, "root/.claude/settings.json"))
		require.NoError(t, err)
		require.Equal(t, "{}\n", string(text))
		text, err = os.ReadFile(precious)
		require.NoError(t, err)
		require.Equal(t, "precious", string(text))
	}
}
