package undo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A renaming or an exchange that fails, because a directory is not writable, does not
// change which directories the command has made: undo removes them without a conflict.
func TestFailedRenames(t *testing.T) {
	const exchange = `exchange() { python3 -c 'import ctypes,sys; sys.exit(ctypes.CDLL(None).renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2) and 1)' "$@"; }; `
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		for name, script := range map[string]string{
			"made second":           `mkdir -p made/sub; echo m > made/sub/m; exchange closed/c made || echo failed`,
			"made first":            `mkdir -p made/sub; echo m > made/sub/m; exchange made closed/c || echo failed`,
			"then moved":            `mkdir -p made/sub; echo m > made/sub/m; mv old made/sub; exchange closed/c made || echo failed; mv made/sub/old made/old; rm -r made/sub`,
			"moved":                 `mkdir -p dir/made/sub; echo m > dir/made/sub/m; mv dir tmpd; mv tmpd closed || echo failed`,
			"moved, made":           `mkdir -p made/sub; echo m > made/sub/m; mv made closed || echo failed; echo more > made/sub/n`,
			"moved, holds old":      `mkdir -p made/sub; echo m > made/sub/m; mv old made/sub; mv made closed || echo failed; mv made/sub/old made/o; rm -r made/sub`,
			"moved, old then gone":  `mkdir -p made/sub; mv old dir made/sub; mv made closed || echo failed; rm -r made; mkdir made; echo n > made/old`,
			"moved, then moved off": `mkdir -p dir/made/sub; echo m > dir/made/sub/m; mv dir closed || echo failed; mv dir other; mkdir dir; echo d > dir/d`,
			"then gone":             `mkdir -p made/sub; mv old made/sub; exchange closed/c made || echo failed; rm -r made`,
		} {
			t.Run(string(level)+" "+name, func(t *testing.T) {
				b := newBench(t, level)
				b.RunOutside(`mkdir closed dir; echo c > closed/c; echo old > old; echo d > dir/d; chmod 500 closed; touch -d @1700000000 closed/c old dir/d dir closed .`)
				before := sandboxtest.DescribeTree(t, b.Root)
				id, output := b.run(exchange + script)
				require.Contains(t, output, "failed")
				b.undo(id)
				require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
			})
		}
	}
}

// A directory that the command has made below one that it exchanges is removed without a
// conflict, unless another program has changed a file there since.
func TestMadeBelowAnExchange(t *testing.T) {
	const exchange = `exchange() { python3 -c 'import ctypes,sys; sys.exit(ctypes.CDLL(None).renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2) and 1)' "$@"; }; `
	for name, c := range map[string]struct{ script, made string }{
		"copied":           {`cp -r d copied; mv -T copied d/in/copied; exchange d link`, "link/in/copied/in/x"},
		"moved and made":   {`mv d/in o; mkdir -p d/in/n; echo n > d/in/n/n; rm -r o; exchange d e`, "e/in/n/n"},
		"exchanged, moved": {`mkdir -p d/in/n/n; echo n > d/in/n/n/n; exchange d e; mv -T e e2`, "e2/in/n/n/n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, proc.L2)
			b.RunOutside(`mkdir -p d/in e; echo x > d/in/x; echo e > e/e; ln -s d link; touch -h -d @1700000000 d/in/x d/in d e/e e link .`)
			before := sandboxtest.DescribeTree(t, b.Root)
			id, _ := b.run(exchange + c.script)
			b.undo(id)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))

			id, _ = b.run(exchange + c.script)
			b.RunOutside(`test -f ` + c.made + ` && sleep 0.05 && echo theirs > ` + c.made)
			record, err := b.store.Open(id)
			require.NoError(t, err)
			_, err = record.Undo(nil)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err))
			_, output := b.run(`grep -rl theirs .`)
			require.NotEmpty(t, output)
		})
	}
}
