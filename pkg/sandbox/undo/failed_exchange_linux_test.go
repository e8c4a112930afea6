package undo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// An exchange that fails, because the directory of one entry is not writable, does not
// change which directories the command has made: undo removes them without a conflict.
func TestFailedExchange(t *testing.T) {
	const exchange = `exchange() { python3 -c 'import ctypes,sys; sys.exit(ctypes.CDLL(None).renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2) and 1)' "$@"; }; `
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		for name, script := range map[string]string{
			"made second": `mkdir -p made/sub; echo m > made/sub/m; exchange closed/c made || echo failed`,
			"made first":  `mkdir -p made/sub; echo m > made/sub/m; exchange made closed/c || echo failed`,
			"then moved":  `mkdir -p made/sub; echo m > made/sub/m; mv old made/sub; exchange closed/c made || echo failed; mv made/sub/old made/old; rm -r made/sub`,
			"then gone":   `mkdir -p made/sub; mv old made/sub; exchange closed/c made || echo failed; rm -r made`,
		} {
			t.Run(string(level)+" "+name, func(t *testing.T) {
				b := newBench(t, level)
				b.RunOutside(`mkdir closed; echo c > closed/c; echo old > old; chmod 500 closed; touch -d @1700000000 closed/c old closed .`)
				before := sandboxtest.DescribeTree(t, b.Root)
				id, output := b.run(exchange + script)
				require.Contains(t, output, "failed")
				b.undo(id)
				require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
			})
		}
	}
}
