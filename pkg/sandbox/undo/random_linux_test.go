package undo_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/undo"
)

// TestRandomSequences runs several commands and undoes them one by one,
// starting with the last. After each undo the tree is equal to the tree before
// that command. UNDO_SEQUENCES is the number of sequences at each level,
// UNDO_SEQUENCES_FROM their first seed.
func TestRandomSequences(t *testing.T) {
	seeds := sandboxtest.Seeds(t, "UNDO_SEQUENCES", 12)
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			b := newBench(t, level)
			for _, seed := range []uint64{113, 386} { // a new directory gets the inode of the removed one
				b.sequence(t, seed, func(state string) string { return state })
			}
			for _, seed := range seeds {
				b.sequence(t, seed, func(state string) string { return state })
			}
		})
	}
}

// TestRandomMoves is TestRandomSequences with scripts that move, link and remove
// files in old and new directories. UNDO_MOVES is the number of sequences at each
// level, UNDO_MOVES_FROM their first seed.
func TestRandomMoves(t *testing.T) {
	seeds := sandboxtest.Seeds(t, "UNDO_MOVES", 60)
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			b := newBench(t, level)
			for _, seed := range seeds {
				b.sequenceOf(t, seed, sandboxtest.MovesTreeScript, sandboxtest.RandomMoves, func(state string) string { return state })
			}
		})
	}
}

// sameFile matches sandboxtest.DescribeTree's note on hard links.
var sameFile = regexp.MustCompile(` same as .*`)

// With the records on another file system, removed files are copied instead of
// linked. Then hard links are restored as separate files.
func TestRandomSequencesCopied(t *testing.T) {
	const memory = "/dev/shm"
	at := mcpkittest.OuterDir(t, "")
	var one, other syscall.Stat_t
	if syscall.Stat(memory, &one) != nil || syscall.Stat(at, &other) != nil || one.Dev == other.Dev {
		t.Skip("there is no second file system")
	}
	dir, err := os.MkdirTemp(memory, "undo-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := benchIn(t, proc.L2, at, filepath.Join(dir, "state", "commands"))
	for seed := range uint64(6) {
		b.sequence(t, 1000+seed, func(state string) string { return sameFile.ReplaceAllString(state, "") })
	}
}

func (b *bench) sequence(t *testing.T, seed uint64, compared func(string) string) {
	b.sequenceOf(t, seed, sandboxtest.GitSettings+sandboxtest.InitialTreeScript, func(r *rand.Rand) string { return sandboxtest.GitSettings + sandboxtest.RandomScript(r) }, compared)
}

// sequenceOf runs scripts of random over the tree of initial, and undoes them.
func (b *bench) sequenceOf(t *testing.T, seed uint64, initial string, random func(*rand.Rand) string, compared func(string) string) {
	b.RemoveFiles()
	b.run(initial)
	b.undoScripts(t, seed, rand.New(rand.NewPCG(seed, 16)), random, compared)
}

// undoScripts runs scripts of random in the tree as it is, and undoes them.
func (b *bench) undoScripts(t *testing.T, seed uint64, r *rand.Rand, random func(*rand.Rand) string, compared func(string) string) {
	var ids, before, told []string
	for range 1 + r.IntN(4) {
		script := random(r)
		told = append(told, script)
		before = append(before, sandboxtest.DescribeTree(t, b.Root))
		id, _ := b.run(script)
		ids = append(ids, id)
	}
	why := fmt.Sprintf("seed %d:\n%s", seed, strings.Join(told, "\n--\n"))
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] != "" {
			record, err := b.store.Open(ids[i])
			require.NoError(t, err, why)
			unheld, _ := record.Unheld()
			report, err := record.Undo(nil)
			require.NoError(t, err, why)
			if len(report.NotHeld) > 0 { // a step that cannot remove its large file leaves it to others
				requireLarge(t, report.NotHeld, unheld, why)
				return
			}
			require.False(t, report.Unchecked, why)
		}
		require.Equal(t, compared(before[i]), compared(sandboxtest.DescribeTree(t, b.Root)), "command %d, %s", i, why)
	}
}

// requireLarge fails the test if a file is small enough to be recorded as a copy, and was
// so before the command, as unheld says.
func requireLarge(t *testing.T, paths []string, unheld []undo.Unheld, why string) {
	for _, path := range paths {
		if slices.ContainsFunc(unheld, func(u undo.Unheld) bool { return u.Path == path && u.Size > supervise.UndoFileBytes }) {
			continue
		}
		info, err := os.Lstat(path)
		require.NoError(t, err, why)
		require.Greater(t, info.Size(), int64(supervise.UndoFileBytes), "%s: %s", path, why)
	}
}

// A plain user cannot enter directories that the command has closed.
func TestAsAPlainUser(t *testing.T) {
	sandboxtest.AsPlainUser(t, "TestSteps", "TestClosedDirectory", "TestRandomMoves")
}
