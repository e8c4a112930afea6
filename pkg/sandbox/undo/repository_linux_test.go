package undo_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// TestRandomRepositories is TestRandomSequences with scripts that change a git
// repository with unusual files. UNDO_REPOSITORIES is the number of sequences at each
// level, UNDO_REPOSITORIES_FROM their first seed.
func TestRandomRepositories(t *testing.T) {
	seeds := sandboxtest.Seeds(t, "UNDO_REPOSITORIES", 3)
	steps := sandboxtest.RepositorySteps{InPlace: true, HardLinks: true, DirMoves: true, Renames: true}
	template := sandboxtest.RepositoryTemplate(t)
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			b := newBench(t, level)
			for _, seed := range seeds {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					b.T = t
					b.FillFrom(template)
					b.undoScripts(t, seed, rand.New(rand.NewPCG(seed, 17)), steps.Script, func(state string) string { return state })
				})
			}
		})
	}
}
