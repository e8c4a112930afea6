package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
)

// table returns the commands in a file of testdata.
func table(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var commands []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, strings.ReplaceAll(line, "⏎", "\n"))
		}
	}
	return commands
}

func newPolicy(t testing.TB, config policy.Config) *policy.Policy {
	t.Helper()
	p, err := policy.New(config)
	require.NoError(t, err)
	return p
}

// Each list has one decision for all its commands, under the default policy.
func TestTables(t *testing.T) {
	p := newPolicy(t, policy.Config{})
	for _, list := range []struct {
		name string
		want policy.Decision
		min  int
	}{
		{"ordinary.txt", policy.Allow, 60},
		{"flagged.txt", policy.Undecided, 50},
		{"hits.txt", policy.Deny, 200},
	} {
		commands := table(t, list.name)
		require.GreaterOrEqual(t, len(commands), list.min)
		wrong := 0
		for _, command := range commands {
			verdict := p.Check(command)
			if verdict.Decision != list.want {
				wrong++
				t.Errorf("%s: %q is %s: %s %v", list.name, command, verdict.Decision, verdict.Message, verdict.Doubts)
			}
		}
		t.Logf("%s: %d commands, %d wrong", list.name, len(commands), wrong)
	}
}

// The policy finds the command that a wrapper starts, in every spelling of the
// wrapper's own options, and does not deny the wrapper itself.
func TestWrappers(t *testing.T) {
	p := newPolicy(t, policy.Config{})
	seen := map[string]bool{}
	lines := table(t, "wrappers.txt")
	for _, line := range lines {
		name, template, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		seen[name] = true
		fill := func(command, path string) string {
			return strings.NewReplacer("CMDPATH", path, "CMD", command, "LINE", command).Replace(template)
		}
		bad := fill("wget -q x", "/usr/bin/wget x")
		require.Equal(t, policy.Deny, p.Check(bad).Decision, bad)
		require.Equal(t, "wget", p.Check(bad).Name, bad)
		good := fill("ls -l wget", "/bin/ls wget")
		require.Contains(t, []policy.Decision{policy.Allow, policy.Undecided}, p.Check(good).Decision, good)
	}
	for _, name := range policy.WrapperNames() {
		if p.Check(name+" ls").Rule != "privileges" {
			require.True(t, seen[name], "%s has no line in wrappers.txt", name)
		}
	}
	t.Logf("%d lines, %d wrappers", len(lines), len(seen))
}

// Exactly the network clients in the documentation are banned.
func TestBannedNames(t *testing.T) {
	off, on := newPolicy(t, policy.Config{}), newPolicy(t, policy.Config{Network: true})
	documented := strings.Fields(`alias curl curlie wget axel aria2c nc telnet lynx w3m links httpie xh http-prompt chrome firefox safari
		http https wget2 ncat netcat nc.openbsd nc.traditional socat elinks firefox-esr`)
	require.ElementsMatch(t, documented, policy.NetworkClientNames())
	for _, name := range append(documented, "google-chrome", "google-chrome-stable", "chromium", "chromium-browser") {
		verdict := off.Check(name + " x")
		require.Equal(t, policy.Deny, verdict.Decision, name)
		require.Equal(t, "network clients", verdict.Rule)
		require.Equal(t, name, verdict.Name)
		require.False(t, on.Check(name+" x").Refused(), name)
	}
	for _, name := range []string{"curly", "links2text", "ncdu", "httpd", "mycurl", "curl-config", "firefoxes"} {
		require.Equal(t, policy.Allow, off.Check(name+" x").Decision, name)
	}
	for _, name := range []string{"sudo", "su", "doas"} {
		require.Equal(t, "privileges", on.Check(name+" x").Rule, name)
	}
}

// BenchmarkCheck measures the verdict on an everyday command, with parsing.
func BenchmarkCheck(b *testing.B) {
	p := newPolicy(b, policy.Config{Deny: []string{"git push *"}, Ask: []string{"npm publish"}})
	commands := table(b, "ordinary.txt")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Check(commands[i%len(commands)])
	}
}
