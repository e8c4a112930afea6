package proc

import (
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// spec is what the supervisor is to do, and what the server keeps to itself.
type spec struct {
	supervise.Spec

	refused  []string // for the result
	link     *egressLink
	gaps     []string // for the result
	homes    []string // of this user, links resolved
	deep     []string // directories in them that were looked through
	followed map[fileID]*os.File
	prologue *os.File // nil without one
	spillDir string
	folders  map[string]map[string]*folder // just found, by roots
	undo     []*os.File                    // what Spec.UndoFiles counts
}

type (
	order  = supervise.Order
	report = supervise.Report
)
