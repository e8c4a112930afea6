package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
)

// FuzzCheck checks that every text gets the same verdict each time, with a short
// and printable message.
func FuzzCheck(f *testing.F) {
	for _, name := range []string{"ordinary.txt", "flagged.txt", "hits.txt"} {
		for _, command := range table(f, name) {
			f.Add(command)
		}
	}
	plain := newPolicy(f, policy.Config{})
	strict := newPolicy(f, policy.Config{Mode: policy.AllowList, Allow: []string{"ls *", "git log *", "*.sh"}, Deny: []string{"git push *", "rm -rf *"}, Ask: []string{"* -x"}})
	f.Fuzz(func(t *testing.T, command string) {
		for _, p := range []*policy.Policy{plain, strict} {
			verdict := p.Check(command)
			require.Equal(t, verdict, p.Check(command))
			require.Less(t, len(verdict.Message), 2000)
			require.True(t, utf8.ValidString(verdict.Message))
			require.NotContains(t, verdict.Message, "\x00")
			require.Equal(t, verdict.Decision == policy.Allow, verdict.Message == "")
		}
		// An allowed command does not make a command before it allowed.
		if strict.Check(command).Decision == policy.Allow {
			for _, before := range []string{"git push\n", "rm -rf a; ", "unknown && "} {
				require.NotEqual(t, policy.Allow, strict.Check(before+command).Decision, "%q", before+command)
			}
		}
		// A refused command is refused after another command, too.
		if plain.Check(command).Refused() && len(command) < 1000 {
			require.True(t, plain.Check("true\n"+command).Refused(), "%q", command)
		}
	})
}

// spell writes a literal word in a random way that bash reads as the same.
func spell(r *rand.Rand, word string) string {
	var b strings.Builder
	for _, c := range []byte(word) {
		switch r.IntN(12) {
		case 0:
			b.WriteString(`\` + string(c))
		case 1:
			b.WriteString(`'` + string(c) + `'`)
		case 2:
			b.WriteString(`"` + string(c) + `"`)
		case 3:
			fmt.Fprintf(&b, `$'\x%02x'`, c)
		case 4:
			fmt.Fprintf(&b, `$'\%03o'`, c)
		case 5:
			fmt.Fprintf(&b, `$'\u%04x'`, c)
		case 6:
			b.WriteString(`''` + string(c))
		case 7:
			b.WriteString(string(c) + `""`)
		case 8:
			b.WriteString("\\\n" + string(c))
		case 9:
			b.WriteString(`$@` + string(c))
		case 10:
			if c < 'a' || c > 'z' {
				b.WriteByte(c)
				break
			}
			fmt.Fprintf(&b, `{%c..%c}`, c, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Any spelling of a command gets the verdict of the plain one.
func TestSpellingsAreEquivalent(t *testing.T) {
	p := newPolicy(t, policy.Config{Deny: []string{"git push *"}, Ask: []string{"rm -r"}})
	r := rand.New(rand.NewPCG(1, 2))
	for _, words := range [][]string{
		{"curl", "x"}, {"git", "push"}, {"git", "pull"}, {"rm", "-r", "x"}, {"ls", "curl"}, {"env", "-i", "wget", "x"}, {"timeout", "5", "curl"},
		{"sudo", "ls"}, {"find", "d", "-exec", "curl", "f", ";"}, {"sh", "-c", "curl"}, {"eval", "curl"}, {"xargs", "curl"},
		{"curl", "localhost"}, {"echo", "sudo"},
	} {
		plain := make([]string, len(words))
		for i, word := range words {
			plain[i] = `'` + word + `'`
		}
		want := p.Check(strings.Join(plain, " "))
		for range 300 {
			spelled := make([]string, len(words))
			for i, word := range words {
				spelled[i] = spell(r, word)
			}
			command := strings.Join(spelled, " ")
			got := p.Check(command)
			require.Equal(t, want.Decision, got.Decision, "%q", command)
			require.Equal(t, want.Rule, got.Rule, "%q", command)
			require.Equal(t, want.Name, got.Name, "%q", command)
		}
	}
}
