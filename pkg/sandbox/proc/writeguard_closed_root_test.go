//go:build linux

package proc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// TestClosedRootIsExamined: a command that removes its user's permissions on the
// root does not keep the server from finding what it left there.
func TestClosedRootIsExamined(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for _, mode := range []string{"0", "600", "444", "222", "111", "333", "100", "555"} {
			for _, last := range []string{"", "; sleep 0.5"} { // checked only at the end, and while it runs
				t.Run(fmt.Sprintf("%s/%s%s", level, mode, last), func(t *testing.T) {
					t.Parallel()
					p := newProject(t)
					p.user("mkdir sub; echo mine > sub/.envrc; chmod 750 .")
					r := p.runner(level)
					run(t, r, p.command("true"))
					result, out := run(t, r, p.command(`printf 'EVIL' > x.sh; chmod +x x.sh; git config core.fsmonitor "$PWD/x.sh"
						mkdir .vscode; echo evil > .vscode/tasks.json; echo evil > .mcp.json; mv sub s; mkdir sub; echo evil > sub/.envrc; chmod `+mode+" ."+last))
					text := fmt.Sprint(level, mode, result.Reverted, result.Unguarded, out)
					info, err := os.Stat(p.root)
					require.NoError(t, err)
					if os.Geteuid() != 0 {
						require.Equal(t, os.FileMode(0o700), info.Mode().Perm()&0o700, text)
						require.Contains(t, result.Reverted, p.root)
					}
					require.Equal(t, 0, result.ExitCode, text)
					require.NoError(t, os.Chmod(p.root, 0o755))
					for _, name := range []string{".vscode", ".mcp.json"} {
						require.NoFileExists(t, filepath.Join(p.root, name), text)
					}
					mine, err := os.ReadFile(filepath.Join(p.root, "sub/.envrc"))
					require.NoError(t, err, text)
					require.Equal(t, "mine\n", string(mine), text)
					require.False(t, p.ran(looks), text)
				})
			}
		}
	}
}

// TestWriteGuardAsAPlainUser runs TestClosedRootIsExamined and others as a plain
// user, to whom permissions apply.
func TestWriteGuardAsAPlainUser(t *testing.T) {
	sandboxtest.AsPlainUser(t, "TestClosedRootIsExamined", "TestSourcedFilesAreRestored", "TestDirectoriesOfVersionControlAreWritable")
}
