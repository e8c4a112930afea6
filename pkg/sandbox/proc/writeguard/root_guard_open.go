package writeguard

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// openRootGuard opens the guard of a root. Its baseline is stored in a
// directory of state, an existing or new directory; with "" it is only kept in
// memory. The caller closes the guard.
func openRootGuard(root, state string) (*RootGuard, error) {
	w := &RootGuard{root: root, inventory: inventory{root: root, harmlessIndexes: map[string]fileState{}}, trustTimes: recordsEveryChange(root), lastChecked: map[supervise.Level]time.Time{}, mark: markIdle, settings: &settingsCache{}}
	var err error
	if w.handle, err = os.OpenRoot(root); err != nil {
		return nil, err
	}
	w.commandLocks = openCommandLocks(root)
	if state == "" {
		return w, nil
	}
	hash := sha256.Sum256([]byte(root))
	w.stateDir = filepath.Join(state, hex.EncodeToString(hash[:12]))
	if err = w.openStateFiles(); err != nil {
		w.close()
		return nil, err
	}
	w.copies = &revertedCopies{dir: filepath.Join(w.stateDir, "aside")}
	w.copies.addStoredSizes()
	return w, nil
}

// openStateFiles opens the files "use" and "lock" in the state directory, which it
// makes if needed, and writes the root's path into the file "root". On an error it may
// leave "use" and "lock" open.
func (w *RootGuard) openStateFiles() error {
	err := os.MkdirAll(w.stateDir, 0o700)
	if err == nil {
		w.useFile, err = os.OpenFile(filepath.Join(w.stateDir, "use"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil {
		w.lockFile, err = os.OpenFile(filepath.Join(w.stateDir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	path := filepath.Join(w.stateDir, "root")
	if text, err2 := os.ReadFile(path); err == nil && (err2 != nil || string(text) != w.root) { // others may read it at any time
		err = os.WriteFile(path, []byte(w.root), 0o600)
	}
	return err
}

// reopenStateFiles opens the files again if the state directory was removed.
// While commands run, it does nothing, since their servers hold the locks of
// the removed files. If the files cannot be opened, the baseline is only kept
// in memory.
func (w *RootGuard) reopenStateFiles() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stateDir == "" || w.runningCount > 0 {
		return
	}
	now, err := os.Stat(filepath.Join(w.stateDir, "use"))
	was, err2 := w.useFile.Stat()
	if err == nil && err2 == nil && os.SameFile(now, was) {
		return
	}
	w.closeOverlapping()
	closeAll(w.useFile, w.lockFile)
	w.loadedInfo, w.stateDirChanged = nil, time.Time{}
	if err := w.openStateFiles(); err != nil {
		closeAll(w.useFile, w.lockFile)
		w.useFile, w.lockFile = nil, nil
	}
}

// close closes all files. No command must be running in the root.
func (w *RootGuard) close() {
	w.handle.Close()
	w.commandLocks.close()
	w.closeOverlapping()
	closeAll(w.useFile, w.lockFile)
}
