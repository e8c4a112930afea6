package undo_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestRandomConflicts runs a command, lets another program change the same tree, and
// undoes the command. What the other program did stays, and an undo that would lose it is
// a conflict which changes nothing. UNDO_CONFLICTS is the number of sequences at each
// level, UNDO_CONFLICTS_FROM their first seed.
func TestRandomConflicts(t *testing.T) {
	seeds := sandboxtest.Seeds(t, "UNDO_CONFLICTS", 12)
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			b := newBench(t, level)
			conflicts, undone := 0, 0
			for _, seed := range seeds {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					b.T = t
					r := rand.New(rand.NewPCG(seed, 18))
					initial, script := sandboxtest.MovesTreeScript, sandboxtest.RandomMoves(r)
					if seed%2 == 0 {
						initial, script = sandboxtest.GitSettings+sandboxtest.InitialTreeScript, sandboxtest.GitSettings+sandboxtest.RandomScript(r)
					}
					b.RemoveFiles()
					b.RunOutside(initial)
					id, _ := b.run(script)
					if id == "" {
						return
					}
					others := sandboxtest.MakeOtherChanges(t, r, b.Root)
					why := fmt.Sprintf("seed %d:\n%s", seed, script)
					before := sandboxtest.DescribeTree(t, b.Root)
					record, err := b.store.Open(id)
					require.NoError(t, err, why)
					if _, err = record.Undo(nil); err == nil {
						undone++
						others.RequireKept(t, true, why)
						return
					}
					conflicts++
					require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v %s", err, why)
					require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root), why)
				})
			}
			t.Logf("%d commands were undone, %d had conflicts", undone, conflicts)
		})
	}
}
