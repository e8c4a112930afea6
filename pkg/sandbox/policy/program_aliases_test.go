package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
)

// A deny rule matches other spellings of its command: options written
// differently, the program under another name, the command in an argument.
func TestSpellingsOfRules(t *testing.T) {
	lines := table(t, "spellings.txt")
	require.GreaterOrEqual(t, len(lines), 150)
	wrong := 0
	for _, line := range lines {
		rule, command, ok := strings.Cut(line, "\t")
		require.True(t, ok, line)
		verdict := newPolicy(t, policy.Config{Deny: []string{rule}, Network: true}).Check(command)
		if verdict.Decision != policy.Deny {
			wrong++
			t.Errorf("deny %s: %q is %s %v", rule, command, verdict.Decision, verdict.Doubts)
		}
	}
	t.Logf("%d spellings, %d not denied", len(lines), wrong)
}

// A deny rule does not match commands that only look like the command it names.
func TestWhatRulesDoNotName(t *testing.T) {
	for _, line := range table(t, "unmeant.txt") {
		rule, command, ok := strings.Cut(line, "\t")
		require.True(t, ok, line)
		for _, config := range []policy.Config{{Deny: []string{rule}, Network: true}, {Ask: []string{rule}, Network: true}} {
			verdict := newPolicy(t, config).Check(command)
			require.NotContains(t, []policy.Decision{policy.Deny, policy.Ask}, verdict.Decision, "%s: %s: %s", rule, command, verdict.Message)
		}
	}
}

// With the network off, a client is found in the arguments of a program that
// starts it, too.
func TestClientsInArguments(t *testing.T) {
	p := newPolicy(t, policy.Config{})
	for _, command := range []string{
		"env -S 'curl\\_x'", "env -S'A=1\\_curl\\_x'", "tmux new 'curl x'", "tmux new curl x", "tmux run-shell 'curl x'", "screen -dm curl x",
		"screen -S a -X stuff 'curl x'", "at now <<< 'curl x'", "ls | entr curl x", "watchexec -- curl x", "/proc/self/exe -c 'curl x'",
		"hash -p /usr/bin/curl harmless", "vim -c '!curl x'", "crontab - <<< '* * * * * curl x'",
	} {
		require.Equal(t, policy.Deny, p.Check(command).Decision, command)
	}
}
