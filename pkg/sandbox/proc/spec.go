package proc

import (
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// spec holds the supervisor's instructions and data that only the server
// needs.
type spec struct {
	supervise.Spec

	refused  []string // for the result
	link     *egressLink
	gaps     []string // for the result
	homes    []string // homes of this user, links resolved
	deep     []string // searched directories in homes
	stores   []string // searched directories of credential stores
	followed map[fileID]*os.File
	prologue *os.File // nil without a prologue
	spillDir string
	folders  map[string]map[string]*folder // just read, by root
	undo     []*os.File                    // the files counted by Spec.UndoFiles
}

type (
	controlMessage = supervise.ControlMessage
	report         = supervise.Report
)
