package undo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
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
