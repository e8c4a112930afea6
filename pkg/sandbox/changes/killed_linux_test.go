package changes_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// actEnv makes the test program apply changes or add layers instead of running
// tests, until the test kills it.
const actEnv = "CHANGES_TEST_ACT"

// act runs in the process that is killed. It applies or discards a set or adds layers to
// it.
func act(what, dir, id string) error {
	set, err := changes.New(dir).Open(id)
	if err != nil {
		return err
	}
	if what == "discard" {
		return set.Discard()
	}
	if what == "apply" {
		report, err := set.Apply(nil, nil)
		if err != nil {
			err = fmt.Errorf("%w %v", err, report.Refused)
		}
		return err
	}
	for n := 0; ; n++ {
		layer, err := set.Begin("layer")
		if err != nil {
			return err
		}
		if err := os.WriteFile(fmt.Sprintf("%s/added%d", layer.Mounts()[0].Upper, n%3), []byte("x"), 0o644); err != nil {
			return err
		}
		if _, err := layer.End(); err != nil {
			return err
		}
	}
}

// killed runs act in another process and kills it after a while.
func (b *bench) killed(what, id string, after time.Duration) {
	self, err := os.Executable()
	require.NoError(b.T, err)
	cmd := exec.Command(self, what, b.dir, id)
	cmd.Env = append(os.Environ(), actEnv+"=1")
	require.NoError(b.T, cmd.Start())
	time.Sleep(after)
	cmd.Process.Kill() //nolint:errcheck // it may have ended
	cmd.Wait()         //nolint:errcheck // it was killed
}

// TestKilledAtRandom kills processes that add layers, and then processes that
// apply the set, until an apply succeeds. The tree must then be equal to that
// which the commands saw. CHANGES_KILLS is the number of trees.
func TestKilledAtRandom(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("CHANGES_KILLS"))
	if n == 0 {
		n = 2
	}
	b := newBench(t)
	r := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
	for range n {
		b.RemoveFiles()
		b.run(nil, `for d in {1..9}; do mkdir -p d$d/sub; for f in {1..12}; do echo $d $f > d$d/f$f; done; echo s > d$d/sub/s; done`)
		set, err := b.store.Create([]string{b.Root})
		require.NoError(t, err)
		b.run(set, `for d in {1..9}; do echo more >> d$d/f1; rm d$d/f2; rm -r d$d/sub; mkdir d$d/sub; echo t > d$d/sub/t; mv d$d/f3 d$d/sub; chmod 600 d$d/f4; done; mv d9 moved; ln -s d1 link`)
		for range 3 {
			b.killed("layers", set.ID(), time.Duration(r.IntN(60))*time.Millisecond)
		}
		seen := b.run(set, listing)
		kills := 0
		for ; len(b.store.List([]string{b.Root})) > 0 && kills < 100; kills++ {
			b.killed("apply", set.ID(), time.Duration(3+r.IntN(20+kills*5))*time.Millisecond)
		}
		if len(b.store.List([]string{b.Root})) > 0 {
			require.NoError(t, act("apply", b.dir, set.ID()))
		}
		require.Equal(t, seen, b.run(nil, listing), "after %d kills", kills)
		t.Logf("applied after %d kills", kills)
	}
}

// TestDiscardIsKilledAtRandom kills processes that discard a set. The tree stays as it is,
// and a repeated discard completes. CHANGES_DISCARD_KILLS is the number of sets.
func TestDiscardIsKilledAtRandom(t *testing.T) {
	b := newBench(t)
	b.run(nil, `for d in {1..5}; do mkdir -p d$d/sub; for f in {1..9}; do echo $d $f > d$d/f$f; done; done`)
	before := sandboxtest.DescribeTree(t, b.Root)
	for _, seed := range sandboxtest.Seeds(t, "CHANGES_DISCARD_KILLS", 3) {
		r := rand.New(rand.NewPCG(seed, 20))
		set, err := b.store.Create([]string{b.Root})
		require.NoError(t, err)
		b.run(set, `rm -r d1; mv d2 d6; for d in d*; do echo more >> $d/f1; chmod 500 $d; done; mkdir -p n/{1..40}/x; touch n/{1..40}/x/f`)
		for try := 0; len(b.store.List([]string{b.Root})) > 0; try++ {
			b.killed("discard", set.ID(), time.Duration(r.IntN(12000+try*2000))*time.Microsecond)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
		}
		require.Equal(t, toolerr.NotFound, toolerr.CodeOf(set.Discard()))
		require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
	}
}
