package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// The messages in which programs say that a mount point kept them from something.
func TestMentions(t *testing.T) {
	const dir, path = "/r/sub", "/r/sub/clone/.git/hooks"
	for line, want := range map[string]bool{
		"rm: cannot remove 'clone/.git/hooks/pre-push.sample': Read-only file system":                   true,
		"rm: cannot remove ‘clone/.git’: Device or resource busy":                                       true,
		"mv: cannot move 'clone' to 'other': Device or resource busy":                                   true,
		"error: failed to delete '/r/sub/clone': Device or resource busy":                               true,
		"bash: line 1: clone/.git/hooks/x: Read-only file system":                                       true,
		"OSError: [Errno 30] Read-only file system: 'clone/.git/hooks/pre-commit'":                      true,
		"Error: EBUSY: resource busy or locked, rename '/r/sub/clone' -> '/r/sub/b'":                    true,
		"open ../sub/clone/.git/hooks/x: read-only file system":                                         true,
		"fatal: cannot create directory at `clone/.git/hooks': Read-only file system":                   true,
		"mount: /r/sub: device or resource busy":                                                        false,
		"touch: cannot touch '/usr/x': Read-only file system":                                           false,
		"touch: cannot touch 'clone2': Read-only file system":                                           false,
		"clone is on a Read-only file system (as its neighbour clone/.github, which is another matter)": true,
		"/: Read-only file system":                                                                      false,
	} {
		require.Equal(t, want, mentionsPath(line, dir, path), line)
	}
}

// A command that a protected file keeps from deleting or moving a directory is told
// so: the program's message says nothing of the reason.
func TestAProtectedFileIsNamed(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	p := newOuterPlace(t)
	if !slices.Contains(confinedLevels(t), "L2") {
		t.Skip("L2 is not available")
	}
	p.write("root/x/.vscode/settings.json", "{}\n")
	p.write("root/free/f", "")
	out, err := exec.Command("git", "init", "-q", filepath.Join(p.root, "clone")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	s := p.serve()
	for command, want := range map[string]string{
		"mv x y":       "protected from commands, also from being moved or deleted: x/.vscode (the user can allow it with --allow-write x/.vscode)",
		"rm -rf x":     "x/.vscode (",
		"rm -rf clone": "clone/.git/hooks (",
	} {
		require.Contains(t, s.bash(command).Text, want, command)
	}
	require.NotContains(t, s.bash("rm -rf free; touch /usr/x").Text, "protected")
	s.bash("git init -q own")
	require.NotContains(t, s.bash("mv own away && rm -r away").Text, "protected")
	open := p.serve("--allow-write", "x/.vscode")
	require.Contains(t, open.bash("rm -rf x && echo gone").Text, "gone")
	require.NoFileExists(t, filepath.Join(p.root, "x"))
}

// What --protect names stays, whatever a command does to the directories above
// it.
func TestProtectedPathsStay(t *testing.T) {
	for _, level := range confinedLevels(t) {
		for _, command := range []string{"rm -rf q", "mv q x", "rm -rf q; ln -s free q", "rm -rf q; touch q", "rm q/p/f", "rm -rf q/p; mkdir -p q/p/f"} {
			p := newOuterPlace(t)
			p.write("root/q/p/f", "kept\n")
			p.write("root/free/f", "")
			p.serve("--sandbox", level, "--protect", filepath.Join(p.root, "q/p")).bash(command)
			kept, err := os.ReadFile(filepath.Join(p.root, "q/p/f"))
			require.NoError(t, err, "%s: %s", level, command)
			require.Equal(t, "kept\n", string(kept), "%s: %s", level, command)
		}
	}
}
