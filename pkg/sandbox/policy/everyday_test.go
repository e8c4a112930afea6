package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
)

// No everyday command is denied or asked about by a rule that does not name it.
func TestRulesLetEverydayCommandsRun(t *testing.T) {
	commands := table(t, "everyday.txt")
	require.GreaterOrEqual(t, len(commands), 323)
	for _, rule := range []string{"rm -rf *", "git push --force *"} {
		for want, config := range map[policy.Decision]policy.Config{
			policy.Deny: {Deny: []string{rule}, Network: true},
			policy.Ask:  {Ask: []string{rule}, Network: true},
		} {
			p, wrong := newPolicy(t, config), 0
			for _, command := range commands {
				if verdict := p.Check(command); verdict.Refused() || verdict.Decision == want {
					wrong++
					t.Errorf("%s %s: %q: %s", want, rule, command, verdict.Message)
				}
			}
			t.Logf("%s %s: %d commands, %d wrong", want, rule, len(commands), wrong)
		}
	}
}
