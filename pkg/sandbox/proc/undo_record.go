package proc

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// addUndoRecord adds to s the record of the command's changes, see
// Config.UndoDir. A command whose record cannot be written runs without a
// record.
func (r *Runner) addUndoRecord(s *spec, c Command) {
	if r.config.UndoDir == "" || !confinesFiles(s.Level) || len(c.Layers) > 0 {
		return
	}
	dir, err := os.Open(r.config.UndoDir)
	if err != nil {
		return
	}
	s.undoDirs = []*os.File{dir}
	for _, root := range s.Roots {
		if root.ReadOnly {
			continue
		}
		if len(s.undoDirs) == supervise.MaxUndoFiles {
			break
		}
		f, err := openDirPath(root.Path)
		if err != nil {
			closeAll(s.undoDirs...)
			s.undoDirs = nil
			return
		}
		s.undoDirs = append(s.undoDirs, f)
	}
	s.Undo, s.UndoFiles = "u"+strings.ToLower(rand.Text()[:8]), len(s.undoDirs)
}

// existingUndoID returns id if an ended command has an undo record of this
// name, "" if the command changed nothing in the roots.
func (r *Runner) existingUndoID(id string) string {
	if id == "" {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(r.config.UndoDir, id)); err != nil {
		return ""
	}
	return id
}
