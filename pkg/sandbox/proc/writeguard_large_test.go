//go:build linux

package proc_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// tooLargePlantings replace or remove programs whose content is too large to be stored.
var tooLargePlantings = map[string]planting{
	"a large hook":                  {"truncate -s 17M .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "printf 'EVIL' > .git/hooks/pre-commit", looks},
	"a large hook, by replacing":    {"truncate -s 17M .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "printf 'EVIL' > n; chmod +x n; mv n .git/hooks/pre-commit", looks},
	"a large program":               {"truncate -s 17M tool; chmod +x tool; git config core.fsmonitor ./tool", "printf 'EVIL' > tool", looks},
	"a large program at one size":   {"truncate -s 17M tool; chmod +x tool; git config core.fsmonitor ./tool", "printf 'EVIL' | dd of=tool conv=notrunc status=none; touch -r a tool", looks},
	"a large program behind a link": {"mkdir t; truncate -s 17M t/tool; chmod +x t/tool; ln -s ../../t/tool .git/hooks/pre-commit", "printf 'EVIL' > t/tool", looks},
}

// TestLargeProgramsAreSetAside: a program that cannot be restored does not run, and the
// gaps say so once.
func TestLargeProgramsAreSetAside(t *testing.T) {
	for name, c := range tooLargePlantings {
		for _, level := range levels(t) {
			if level == proc.Off {
				continue
			}
			t.Run(name+", "+string(level), func(t *testing.T) {
				sandboxtest.SkipUnsampled(t)
				t.Parallel()
				p := newProject(t)
				p.user(c.before)
				r := p.runner(level)
				run(t, r, p.command("true"))
				result, _, err := r.Run(context.Background(), p.command(c.script))
				require.NoError(t, err)
				require.False(t, p.ran(c.look), "%v %v", result.Reverted, result.Gaps)
				said := strings.Join(result.Gaps, "\n")
				if aside, _ := filepath.Glob(filepath.Join(p.root, "*", "*.toolroom-*")); len(aside) > 0 {
					require.Contains(t, said, "cannot be restored because it had more than 16 MiB")
				}
				result, _, err = r.Run(context.Background(), p.command("true"))
				require.NoError(t, err)
				require.NotContains(t, strings.Join(result.Gaps, "\n"), "cannot be restored")
			})
		}
	}
}

// TestLargeProgramsThatAreRemoved: the loss is said once.
func TestLargeProgramsThatAreRemoved(t *testing.T) {
	p := newProject(t)
	p.user("truncate -s 17M .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit")
	r := p.runner(proc.L1)
	run(t, r, p.command("true"))
	result, _ := run(t, r, p.command("rm .git/hooks/pre-commit"))
	require.Contains(t, strings.Join(result.Gaps, "\n"), ".git/hooks/pre-commit was removed, and cannot be restored")
	result, _ = run(t, r, p.command("true"))
	require.NotContains(t, strings.Join(result.Gaps, "\n"), "cannot be restored")
}
