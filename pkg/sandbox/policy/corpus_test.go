package policy_test

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
)

// stronger lists the cases that are denied although the corpus asks only for
// undecided: the text shows which command runs.
var stronger = []string{"xargs -I", "heredoc sh", "brace", "vim", "glob2"}

// notHere lists the cases whose expected outcome needs a kernel or a running
// bash. It is empty, as the text of every command of the corpus gives a verdict;
// the tests of the tool check that the commands cannot escape.
var notHere = []string{}

type attack struct{ name, want, command string }

// attacks reads the corpus, with invented paths and hosts for its placeholders.
func attacks(t *testing.T) []attack {
	t.Helper()
	file, err := os.Open("testdata/commands.tsv")
	require.NoError(t, err)
	defer file.Close()
	places := strings.NewReplacer(
		`\n`, "\n", `\u00a0`, "\u00a0", "@REPEAT60", strings.Repeat("true;", 60)+"curl x",
		"{BINNAME}", "bin", "{BINGLOB}", "/b/bi[n]", "{BIN}", "/b/bin", "{TOP}", "/b", "{ROOT}", "/r", "{PORT}", "5555", "{LOG}", "/b/log",
	)
	var all []attack
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		columns := strings.Split(scanner.Text(), "\t")
		if strings.HasPrefix(scanner.Text(), "#") {
			continue
		}
		require.Len(t, columns, 4, "%s", scanner.Text())
		// printf's own \n inside quotes stays as it is.
		command := columns[3]
		if columns[0] == "write+chmod" {
			command = strings.ReplaceAll(command, `\n`, `\\n`)
		}
		all = append(all, attack{columns[0], columns[1], places.Replace(command)})
	}
	require.Len(t, all, 85)
	return all
}

// Each spelling of a banned command gets the verdict that the corpus says can
// be reached from its text.
func TestCorpus(t *testing.T) {
	p, err := policy.New(policy.Config{})
	require.NoError(t, err)
	cases, wrong := 0, 0
	for _, a := range attacks(t) {
		if slices.Contains(notHere, a.name) {
			continue
		}
		cases++
		want := a.want
		if slices.Contains(stronger, a.name) {
			require.Equal(t, "undecided", want, a.name)
			want = "deny"
		}
		verdict := p.Check(a.command)
		if got := string(verdict.Decision); got != want {
			wrong++
			t.Errorf("%s: %q is %s, want %s: %s %v", a.name, a.command, got, want, verdict.Message, verdict.Doubts)
		}
	}
	t.Logf("%d cases, %d wrong, %d not run here %v", cases, wrong, len(notHere), notHere)
}
