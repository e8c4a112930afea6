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

// rebaseTodoName is the file with the steps of an unfinished rebase, in the
// directory rebase-merge of a repository.
const rebaseTodoName = "git-rebase-todo"

// removedSteps holds the steps that were removed from a rebase that a command
// began. While no command runs, the file lacks the steps that run a program, so
// that the user's git rebase --continue does not run them. As part of the
// baseline, it is stored with encoding/gob.
type removedSteps struct {
	Whole []byte            // content of the file as the command left it
	Left  [sha256.Size]byte // hash of the file without the removed steps; of a removed autostash that of operationIdentity
	Stash bool              // the file is an autostash
}

// checkRebaseSteps removes the steps of a rebase that run a program, except for
// those of the baseline. It adds the file to rc.reverted only if these steps
// were not reported before.
func (rc *rootCheck) checkRebaseSteps(name, path string, was, now *fileState) {
	if !now.Mode.IsRegular() || now.Size > maxStoredBytes {
		rc.revert(name, path, was.Spot == rebaseStepsKind, was)
		return
	}
	left := gitfile.KeepAllowedSteps(now.Content, was.Runs)
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
		rc.baseline.Steps[name] = removedSteps{Whole: now.Content, Left: sha256.Sum256(left)}
		rc.stepsRemoved = true
	}
	if err != nil || !told {
		rc.recordRevert(path, err)
	}
}

// revertOptions reverts the options of an unfinished operation. A new file is
// emptied, because git am does not even abort without it.
func (rc *rootCheck) revertOptions(name, path string, inBaseline bool, was, now *fileState) {
	if inBaseline {
		rc.revert(name, path, true, was)
		return
	}
	rc.copies.store(path, now.Content)
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.replaceFile(name, nil, now.Mode.Perm()|0o400) }))
}

// restoreRebaseSteps writes the removed steps of unfinished rebases back before
// a command starts, which may continue the rebase. It forgets the steps of a
// rebase that has moved on since, and reports whether it forgot any.
func (w *RootGuard) restoreRebaseSteps() (changed bool) {
	for name, removed := range w.baseline.Steps {
		path := filepath.Join(w.root, name)
		content, err := readRegularFile(path, maxStoredBytes)
		if removed.Stash {
			if !w.restoreAutostash(name, removed) {
				delete(w.baseline.Steps, name)
				changed = true
			}
			continue
		}
		if err == nil && sha256.Sum256(content) == removed.Left {
			rc := &rootCheck{root: w.root, handle: w.handle, baseline: &w.baseline, found: &scanResult{}}
			if rc.withAccess(name, func() error { return rc.replaceFile(name, removed.Whole, permOf(path)) }) == nil {
				continue
			}
		}
		if err == nil && bytes.Equal(content, removed.Whole) {
			continue // the server of the last command was killed
		}
		delete(w.baseline.Steps, name)
		changed = true
	}
	return changed
}

// permOf returns the permission bits of the file at path, 0644 if there is no
// file.
func permOf(path string) fs.FileMode {
	if info, err := os.Lstat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}
