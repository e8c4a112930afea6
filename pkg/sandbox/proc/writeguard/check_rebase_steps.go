package writeguard

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// rebaseTodoName is the list of steps of an unfinished rebase, in the directory
// rebase-merge of a repository.
const rebaseTodoName = "git-rebase-todo"

// removedSteps are the steps of a rebase that a command began. While no command
// runs, the file lacks those that run a command of it, so that the user's git
// rebase --continue does not run them.
type removedSteps struct {
	Whole []byte            // as the command left it
	Left  [sha256.Size]byte // hash of the file without the removed steps
}

// checkRebaseSteps removes the steps of a rebase that run a command, except for those of
// the baseline. It reports the file unless another command has already been
// told of the same steps.
func (rc *rootCheck) checkRebaseSteps(name, path string, was, now *fileState) {
	if !now.Mode.IsRegular() || now.Size > maxStoredBytes {
		rc.revert(name, path, was.Spot == rebaseStepsKind, was)
		return
	}
	left := gitfile.StepsWithout(now.Content, was.Runs)
	if len(left) == len(now.Content) {
		return
	}
	told := slices.Equal(rc.baseline.Steps[name].Whole, now.Content)
	if !told {
		rc.copies.store(path, now.Content)
	}
	err := rc.withAccess(name, func() error { return rc.replaceFile(name, left, now.Mode.Perm()|0o400) })
	if err == nil && !told {
		if rc.baseline.Steps == nil {
			rc.baseline.Steps = map[string]removedSteps{}
		}
		rc.baseline.Steps[name] = removedSteps{now.Content, sha256.Sum256(left)}
		rc.stepsRemoved = true
	}
	if err != nil || !told {
		rc.recordRevert(path, err)
	}
}

// restoreRebaseSteps writes the removed steps of unfinished rebases back before a
// command starts, which may continue the rebase. It forgets those of a rebase
// that has moved on since, and reports whether there are any.
func (w *RootGuard) restoreRebaseSteps() (changed bool) {
	for name, held := range w.baseline.Steps {
		path := filepath.Join(w.root, name)
		content, err := readRegularFile(path, maxStoredBytes)
		if err == nil && sha256.Sum256(content) == held.Left {
			rc := &rootCheck{root: w.root, handle: w.handle, baseline: &w.baseline, found: &scanResult{}}
			if rc.withAccess(name, func() error { return rc.replaceFile(name, held.Whole, permOf(path)) }) == nil {
				continue
			}
		}
		if err == nil && bytes.Equal(content, held.Whole) {
			continue // the server of the last command was killed
		}
		delete(w.baseline.Steps, name)
		changed = true
	}
	return changed
}

func permOf(path string) fs.FileMode {
	if info, err := os.Lstat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}
