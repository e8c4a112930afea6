package undo_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/undo"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// undoEnv makes the test program undo a record instead of running tests.
const undoEnv = "UNDO_TEST_UNDO"

// undoRecord runs in the process that is killed.
func undoRecord(dir, id string) error {
	record, err := undo.New(dir).Open(id)
	if err == nil {
		_, err = record.Undo(nil)
	}
	return err
}

// undoKilled undoes a record in another process, and kills it after a while. It returns
// the error text of a process that has failed before.
func (b *bench) undoKilled(id string, after time.Duration) (failure string) {
	b.T.Helper()
	self, err := os.Executable()
	require.NoError(b.T, err)
	var said bytes.Buffer
	cmd := exec.Command(self, b.dir, id)
	cmd.Env, cmd.Stderr = append(os.Environ(), undoEnv+"=1"), &said
	require.NoError(b.T, cmd.Start())
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	err = cmd.Wait()
	timer.Stop()
	if err != nil && cmd.ProcessState.Exited() {
		return said.String()
	}
	return ""
}

// TestKilledAtRandom kills processes that undo commands, and repeats the undo until it
// succeeds. The tree is then the one before the commands, and no undo fails. UNDO_KILLS
// is the number of sequences, UNDO_KILLS_FROM their first seed.
func TestKilledAtRandom(t *testing.T) {
	b := newBench(t, proc.L2)
	template := sandboxtest.RepositoryTemplate(t)
	steps := sandboxtest.RepositorySteps{InPlace: true, HardLinks: true, DirMoves: true, Renames: true}
	kills := 0
	for _, seed := range sandboxtest.Seeds(t, "UNDO_KILLS", 3) {
		r := rand.New(rand.NewPCG(seed, 19))
		b.FillFrom(template)
		var ids, before []string
		why := fmt.Sprintf("seed %d:", seed)
		for range 2 {
			script := steps.Script(r) + "\n" + steps.Script(r)
			before = append(before, sandboxtest.DescribeTree(t, b.Root))
			id, _ := b.run(script)
			ids = append(ids, id)
			why += "\n" + script
		}
		for i := len(ids) - 1; i >= 0; i-- {
			if ids[i] == "" {
				continue
			}
			for try := 0; ; try++ {
				if _, err := b.store.Open(ids[i]); err != nil {
					require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), why)
					break
				}
				after := time.Duration(r.IntN(20000+try*5000)) * time.Microsecond
				if try > 40 {
					after = time.Minute
				}
				require.Empty(t, b.undoKilled(ids[i], after), why)
				kills++
			}
			require.Equal(t, before[i], sandboxtest.DescribeTree(t, b.Root), why)
		}
	}
	t.Logf("%d undos were started and most of them killed", kills)
}

// What a killed undo has written through one hard link is no change by others for the
// other one, after the first one is gone.
func TestHardLinkAfterAKilledUndo(t *testing.T) {
	b := newBench(t, proc.L2)
	before := sandboxtest.DescribeTree(t, b.Root)
	id, _ := b.run(`echo one > m; echo a > a; echo b > b; ln m l; echo more >> l; rm l`)
	record, err := b.store.Open(id)
	require.NoError(t, err)
	calls := 0
	require.Panics(t, func() {
		record.Undo(func(abs string) string { //nolint:errcheck // it panics
			if filepath.Base(abs) == "a" {
				if calls++; calls == 2 { // 1: the check for conflicts; the last step removes m
					panic("killed")
				}
			}
			return ""
		})
	})
	require.NoFileExists(t, filepath.Join(b.Root, "l"))
	_, err = record.Undo(nil)
	require.NoError(t, err)
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
}
