package undo_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// The undo of a later command makes a directory or link again, as another file. The undo
// of the earlier command moves it back all the same.
func TestMovedBackAfterALaterUndo(t *testing.T) {
	for name, scripts := range map[string][2]string{
		"directories":        {`exchange d e`, `rm -r d e`},
		"directory and file": {`exchange d f`, `rm -r f`},
		"link and file":      {`exchange l f`, `rm f l`},
		"moved over another": {`mv -T d empty`, `rm -r empty; mkdir d`},
		"made twice":         {`rm -r d; mkdir d; echo y > d/x; touch -d @1700000000 d/x`, `rm -r d`}, // often in the inode of the removed one
		"exchanged twice":    {`exchange d e; exchange e f`, `rm -r d e f; mkdir f`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, proc.L2)
			exchange := `exchange() { python3 -c 'import ctypes,sys; ctypes.CDLL(None).renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2)' "$@"; }; `
			b.RunOutside(`mkdir d e empty; echo d > d/x; echo e > e/y; echo f > f; ln -s f l`)
			states, ids := []string{}, []string{}
			for _, script := range scripts {
				states = append(states, sandboxtest.DescribeTree(t, b.Root))
				id, _ := b.run(exchange + script)
				require.NotEmpty(t, id, script)
				ids = append(ids, id)
			}
			// Take the free inode numbers, so that undo gets others.
			b.RunOutside(`cd ` + filepath.Join(b.dir, "..", "..") + `; mkdir n{1..64}; for i in {1..64}; do echo $i > m$i; done`)
			for i := len(ids) - 1; i >= 0; i-- {
				b.undo(ids[i])
				require.Equal(t, states[i], sandboxtest.DescribeTree(t, b.Root), "command %d", i)
			}
		})
	}
}
