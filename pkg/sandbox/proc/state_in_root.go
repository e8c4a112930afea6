package proc

import (
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// checkStateAtL1 returns a SANDBOX_UNAVAILABLE error if a directory of a server's
// state exists in a root that the command of s could write to. L1 cannot hide it
// there: a command could change the record of what it must not change. Other
// hidden directories in a root are named in the gaps.
func (r *Runner) checkStateAtL1(s *spec) error {
	if s.Level != L1 {
		return nil
	}
	for _, dir := range append([]string{r.config.WatchDir}, r.config.StateDirs...) {
		if dir == "" {
			continue
		}
		for _, path := range []string{dir, r.resolveStateDir(dir)} {
			for _, root := range s.Roots {
				if !root.ReadOnly && path != "" && supervise.IsBeneath(root.Path, path) && isDir(path) {
					return errUnavailable("the state directory %s is in the root %s, where commands could change it at level L1: use another root, or give a state directory elsewhere with --state DIR and remove this one",
						pathname.Escape(dir), pathname.Escape(root.Path))
				}
			}
		}
	}
	return nil
}

// resolveStateDir returns the path of a state directory with its links resolved, ""
// if it does not exist. It resolves an existing directory only once.
func (r *Runner) resolveStateDir(dir string) string {
	if resolved, ok := r.stateDirs.Load(dir); ok {
		return resolved.(string)
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	r.stateDirs.Store(dir, resolved)
	return resolved
}

// isDir reports whether there is a directory at path, possibly through links.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
