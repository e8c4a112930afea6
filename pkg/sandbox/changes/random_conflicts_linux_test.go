package changes_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestRandomConflicts runs commands, lets another program change the same tree, and then
// applies or discards the changes of the commands. What the other program did stays, and
// an apply that would lose it is a conflict. CHANGES_CONFLICTS is the number of
// sequences, CHANGES_CONFLICTS_FROM their first seed.
func TestRandomConflicts(t *testing.T) {
	b := newBench(t)
	conflicts, applied := 0, 0
	for _, seed := range sandboxtest.Seeds(t, "CHANGES_CONFLICTS", 12) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			b.T = t
			r := rand.New(rand.NewPCG(seed, 18))
			initial, random := sandboxtest.MovesTreeScript, sandboxtest.RandomMoves
			if seed%2 == 0 {
				initial = sandboxtest.GitSettings + sandboxtest.InitialTreeScript
				random = func(r *rand.Rand) string { return sandboxtest.GitSettings + sandboxtest.RandomScript(r) }
			}
			b.RemoveFiles()
			b.run(nil, initial)
			set, err := b.store.Create([]string{b.Root})
			require.NoError(t, err)
			var scripts []string
			for range 1 + r.IntN(3) {
				scripts = append(scripts, random(r))
				b.run(set, scripts[len(scripts)-1])
			}
			others := sandboxtest.MakeOtherChanges(t, r, b.Root)
			why := fmt.Sprintf("seed %d:\n%s", seed, strings.Join(scripts, "\n--\n"))
			before := sandboxtest.DescribeTree(t, b.Root)
			if seed%8 == 7 {
				require.NoError(t, set.Discard(), why)
				require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root), why)
				return
			}
			report, err := set.Apply(nil, nil)
			if err == nil {
				applied++
				others.RequireKept(t, false, why)
				return
			}
			conflicts++
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v %s", err, why)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root), why)
			// The changes without a conflict are applied by their names.
			list, err := set.Changes()
			require.NoError(t, err, why)
			var free []string
			for _, c := range list {
				if c.Kind != changes.Touched && !conflictsWith(report, b.Root+"/"+c.Path) {
					free = append(free, c.Path)
				}
			}
			if len(free) > 0 {
				_, err = set.Apply(free, nil)
				require.True(t, err == nil || toolerr.CodeOf(err) == toolerr.Conflict, "%v %s", err, why)
			}
			others.RequireKept(t, false, why)
			if err := set.Discard(); err != nil {
				require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), why)
			}
			others.RequireKept(t, false, why)
		})
	}
	t.Logf("%d sets were applied, %d had conflicts", applied, conflicts)
}

// conflictsWith reports whether a report names a path, or one above or below it.
func conflictsWith(report changes.Report, path string) bool {
	for _, refused := range report.Refused {
		if refused.Path == path || strings.HasPrefix(refused.Path, path+"/") || strings.HasPrefix(path, refused.Path+"/") {
			return true
		}
	}
	return false
}
