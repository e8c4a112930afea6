package writeguard

import (
	"bytes"
	"crypto/sha256"
	"path/filepath"
)

// The names of the files with the stash that git applies when an operation
// ends or is aborted: in the directory of a rebase, and of a merge in the
// repository (MERGE_AUTOSTASH of git's path.h).
const (
	autostashName      = "autostash"
	mergeAutostashName = "MERGE_AUTOSTASH"
)

// checkAutostash removes the autostash that a command left, because the user's
// next git commit, merge --abort or rebase --continue would write the files of
// that stash, such as project settings and hooks. restoreRebaseSteps writes it
// back before the next command. It adds the file to rc.reverted only if it was
// not reported before.
func (rc *rootCheck) checkAutostash(name, path string, now *fileState) {
	told := bytes.Equal(rc.baseline.Steps[name].Whole, now.Content)
	if !told {
		rc.copies.store(path, now.Content)
	}
	err := rc.withAccess(name, func() error { return rc.removeItem(name) })
	if err == nil && !told {
		if rc.baseline.Steps == nil {
			rc.baseline.Steps = map[string]removedSteps{}
		}
		rc.baseline.Steps[name] = removedSteps{Whole: now.Content, Left: sha256.Sum256(operationIdentity(rc.root, name)), Stash: true}
		rc.stepsRemoved = true
	}
	if err != nil || !told {
		rc.recordRevert(path, err)
	}
}

// operationIdentity returns the content of the file that distinguishes the
// operation of the autostash name from a later operation: orig-head or
// MERGE_HEAD. It returns nil if the operation has ended.
func operationIdentity(root, name string) []byte {
	other := "orig-head"
	if filepath.Base(name) == mergeAutostashName {
		other = "MERGE_HEAD"
	}
	content, _ := readRegularFile(filepath.Join(root, filepath.Dir(name), other), maxStoredBytes)
	return content
}

// restoreAutostash writes the removed autostash name back, unless it is there already.
// It returns false if its operation has ended or got another autostash, and if it cannot
// be written.
func (w *RootGuard) restoreAutostash(name string, removed removedSteps) bool {
	path := filepath.Join(w.root, name)
	if content, err := readRegularFile(path, maxStoredBytes); err == nil || pathExists(path) {
		return bytes.Equal(content, removed.Whole) // the server of the last command was killed
	}
	operation := operationIdentity(w.root, name)
	if operation == nil || sha256.Sum256(operation) != removed.Left {
		return false
	}
	rc := &rootCheck{root: w.root, handle: w.handle, baseline: &w.baseline, found: &scanResult{}}
	return rc.withAccess(name, func() error { return rc.replaceFile(name, removed.Whole, 0o644) }) == nil
}
