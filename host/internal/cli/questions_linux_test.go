package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// converse runs mcp-host on a terminal and answers its questions in order. It
// returns the error of the program.
func converse(t *testing.T, home string, args []string, answers ...[2]string) (screen string, err error) {
	t.Helper()
	term := newTerminal(t)
	cmd := exec.Command("mcp-host", args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "MCP_STATE_DIR="+filepath.Join(home, "state"))
	cmd.Dir = home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
	require.NoError(t, cmd.Start())
	for _, one := range answers {
		term.sees(t, one[0])
		_, err := term.keys.WriteString(one[1] + "\n")
		require.NoError(t, err)
	}
	err = cmd.Wait()
	term.tty.Close() //nolint:errcheck // the reader ends with it
	<-term.end
	return term.written(), err
}

func TestInstallAsksOnATerminal(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".cursor", "mcp.json")
	questions := func(last string) [][2]string {
		return [][2]string{{"Which client? Number or name: ", "cursor"}, {"Which directory may the tools use? [" + home + "] ", ""}, {"Write this? [y/N] ", last}}
	}
	screen, err := converse(t, home, []string{"install"}, questions("n")...)
	require.NoError(t, err, screen)
	require.Contains(t, screen, "nothing was changed")
	require.NoFileExists(t, file)

	screen, err = converse(t, home, []string{"install"}, questions("y")...)
	require.NoError(t, err, screen)
	require.Contains(t, screen, "Cursor: added toolroom to "+file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"--root", "`+home+`"`)

	screen, err = converse(t, home, []string{"install"}, [2]string{"Which client? Number or name: ", "emacs"})
	require.Error(t, err)
	require.Contains(t, screen, `no client "emacs"; nothing was changed`)
}

func TestAddAsksOnATerminal(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "config", "toolroom", "toolroom.yaml")
	add := []string{"add", "--name", "fix", "--", "fixture"}
	screen, err := converse(t, home, add, [2]string{"Start it and add it? [y/N] ", ""})
	require.Error(t, err)
	require.Contains(t, screen, "nothing was changed")
	require.NoFileExists(t, file)

	screen, err = converse(t, home, add, [2]string{"Start it and add it? [y/N] ", "yes"})
	require.NoError(t, err, screen)
	require.Contains(t, screen, "added fix to "+file)
	require.FileExists(t, file)
}
