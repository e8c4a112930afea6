//go:build oracle

package policy_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
)

// askBash returns the words to which bash expands each literal spelling. Bash
// runs only printf: a spelling may contain quotes, escapes and braces, and
// askBash rejects one that could contain more.
func askBash(t *testing.T, spellings []string) [][]string {
	t.Helper()
	var script strings.Builder
	for _, spelling := range spellings {
		require.NotRegexp(t, "[`;|&<>()!#~*?]|\\$[^'@]", strings.ReplaceAll(spelling, `\$`, ""), "not a literal")
		script.WriteString("printf '%s\\0' " + spelling + "; printf 'end of words\\0'\n")
	}
	cmd := exec.Command(oracle.Path(t, "bash"), "--norc", "--noprofile", "-f")
	cmd.Stdin = strings.NewReader(script.String())
	cmd.Dir, cmd.Env = t.TempDir(), []string{"LC_ALL=C.UTF-8", "PATH=/nowhere"}
	out, err := cmd.Output()
	require.NoError(t, err)
	var all [][]string
	var words []string
	for _, word := range bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if string(word) == "end of words" {
			all, words = append(all, words), nil
			continue
		}
		words = append(words, string(word))
	}
	require.Len(t, all, len(spellings))
	return all
}

// The policy expands each spelling to the same words as bash.
func TestWordsAreThoseOfBash(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{
		"a", "b", "{", "}", ",", "..", "1", "3", "-", "'", "'x y'", `"p q"`, `""`, `\`, `\'`, `\"`, `\{`, `$'\n'`, `$'\x41'`, `$'\101'`, `$'\u00e9'`, `$'\''`,
		`$'a\0b'`, `$'\cA'`, `$'\x4'`, `$'\e'`, `$'\q'`, `$'\U0001F600'`, `$'\x'`, `$'\8'`, `"\$x"`, `"\a"`, `"\\"`, "{a,b}", "{1..3}", "{a..c}", "{3..1..2}", "{,x}", "{a,{b,c}}",
		"=", "/", ".", "%", "$@", `"$@"`, "é",
	}
	var spellings []string
	parses := func(text string) bool {
		return !strings.Contains(newPolicy(t, policy.Config{}).Check("x "+text).Message, "does not parse")
	}
	for len(spellings) < 4000 {
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		text := b.String()
		if strings.Count(text, "'")%2 == 0 && strings.HasSuffix(text, `\`) == false && parses(text) {
			spellings = append(spellings, text)
		}
	}
	compared, wrong := 0, 0
	for i, want := range askBash(t, spellings) {
		got, ok := policy.Words(spellings[i])
		if !ok {
			continue // not known, which is never wrong
		}
		compared++
		if len(want) == 1 && want[0] == "" && len(got) == 0 {
			continue // printf prints one empty text for no words at all
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			if wrong++; wrong < 20 {
				t.Errorf("%s: %q, bash has %q", spellings[i], got, want)
			}
		}
	}
	require.Greater(t, compared, 2000)
	t.Logf("%d spellings compared, %d wrong", compared, wrong)
}

// A text that does not parse for the policy does not parse for bash -n.
func TestWhatDoesNotParseIsNoBash(t *testing.T) {
	p := newPolicy(t, policy.Config{})
	bash := oracle.Path(t, "bash")
	for _, name := range []string{"ordinary.txt", "flagged.txt", "hits.txt"} {
		for _, command := range table(t, name) {
			cmd := exec.Command(bash, "--norc", "-n")
			cmd.Stdin = strings.NewReader(command + "\n")
			out, err := cmd.CombinedOutput()
			takes := err == nil && !bytes.Contains(out, []byte("delimited by end-of-file"))
			require.Equal(t, takes, p.Check(command).Rule != "must parse", "%s: %s", command, out)
		}
	}
}

// Bash runs rm for each command of hiddenValues.
func TestHiddenValuesRun(t *testing.T) {
	bash, dir := oracle.Path(t, "bash"), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rm"), []byte("#!"+bash+"\necho removes\n"), 0o700))
	require.NoError(t, os.Symlink(bash, filepath.Join(dir, "bash")))
	for _, command := range hiddenValues {
		cmd := exec.Command(bash, "--norc", "--noprofile", "-c", command)
		cmd.Dir, cmd.Env = dir, []string{"LC_ALL=C.UTF-8", "PATH=" + dir}
		out, _ := cmd.CombinedOutput()
		require.Contains(t, string(out), "removes", "%s", command)
	}
}
