//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// A prologue runs in the same bash as the script and leaves nothing in its
// environment. Its report is returned however bash exits.
func TestPrologue(t *testing.T) {
	r := newRunner(t, proc.Config{Level: proc.Off})
	c := proc.Command{
		Script: `cd /; x=$known; env | grep -c BASH_ENV; exit 3`, Dir: t.TempDir(),
		Prologue: func(report string) string { return "known=yes\ntrap 'echo \"$x $PWD\" > \"" + report + "\"' EXIT\n" },
	}
	result, out := run(t, r, c)
	require.Equal(t, 3, result.ExitCode)
	require.Equal(t, "0", strings.TrimSpace(out))
	require.Equal(t, "yes /\n", string(result.Report))
}

// Only a regular file is a report. A link would let a command read a hidden
// file, a fifo would block the server.
func TestReportIsAFile(t *testing.T) {
	r := newRunner(t, proc.Config{Level: proc.Off})
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("hidden"), 0o600))
	for _, script := range []string{
		`ln -s "` + secret + `" "$report"`, `mkfifo "$report"`, `mkdir "$report"`, `head -c 1100000 /dev/zero > "$report"`, "true",
	} {
		result, _ := run(t, r, proc.Command{
			Script: script, Dir: t.TempDir(), Prologue: func(report string) string { return "report='" + report + "'\n" },
		})
		require.Equal(t, proc.Exited, result.Ending, script)
		require.Nil(t, result.Report, script)
	}
}
