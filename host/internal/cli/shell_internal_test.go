package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is shown can be pasted: bash reads the words that were meant.
func TestCommandsCanBePasted(t *testing.T) {
	require.Equal(t, "/bin/x --root=/a b=c", shellCommand([]string{"/bin/x", "--root=/a", "b=c"}))
	require.Equal(t, `'a b' 'it'\''s' '' '$HOME' '*' '~' '#x'`, shellCommand([]string{"a b", "it's", "", "$HOME", "*", "~", "#x"}))
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	words := []string{
		"a", "a b", "it's", `"`, `\`, `\'`, "$(touch x)", "`x`", "", "~", "a=b", "!x", "#", "*", "{a,b}", "é", "日本", "-n",
		"two\nlines", "\t", "\x1b[31mred", "\x0123", "a\x7fb", "\u202eb\u009b", "x\xffy", "'\n'", "%s", ";", "&", "|", "<", ">", "^", "[a]", "(x)",
	}
	line := shellCommand(append([]string{"printf", `%s\0`}, words...))
	require.Equal(t, line, printable(line), "nothing in it steers a terminal")
	out, err := exec.Command(bash, "-c", line).Output()
	require.NoError(t, err)
	require.Equal(t, strings.Join(words, "\x00")+"\x00", string(out))
	require.Equal(t, "'A=b' yes", shellCommand([]string{"A=b", "yes"}), "it sets no variable")
}
