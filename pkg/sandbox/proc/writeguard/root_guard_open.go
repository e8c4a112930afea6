package writeguard

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// openWatch opens a root, with the files of its baseline in the directory
// state, in memory if state is "".
func openRootGuard(root, state string) (*RootGuard, error) {
	w := &RootGuard{root: root, inventory: inventory{root: root, checked: map[string]item{}}, trustTimes: keepsTimes(root), looked: map[supervise.Level]time.Time{}, mark: markIdle}
	var err error
	if w.handle, err = os.OpenRoot(root); err != nil {
		return nil, err
	}
	w.presence = openPresence(root)
	if state == "" {
		return w, nil
	}
	hash := sha256.Sum256([]byte(root))
	w.dir = filepath.Join(state, hex.EncodeToString(hash[:12]))
	if err = w.openState(); err != nil {
		w.close()
		return nil, err
	}
	w.aside = &aside{dir: filepath.Join(w.dir, "aside")}
	w.aside.measure()
	return w, nil
}

// openState opens the files in the state directory.
func (w *RootGuard) openState() error {
	err := os.MkdirAll(w.dir, 0o700)
	if err == nil {
		w.use, err = os.OpenFile(filepath.Join(w.dir, "use"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil {
		w.lock, err = os.OpenFile(filepath.Join(w.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	path := filepath.Join(w.dir, "root")
	if text, err2 := os.ReadFile(path); err == nil && (err2 != nil || string(text) != w.root) { // others may read it at any time
		err = os.WriteFile(path, []byte(w.root), 0o600)
	}
	return err
}

// reopenState opens the files again if the state directory was removed. While
// commands run, it does nothing, since their servers hold the locks of the
// removed files. If the files cannot be opened, the baseline is kept in
// memory.
func (w *RootGuard) reopenState() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" || w.running > 0 {
		return
	}
	now, err := os.Stat(filepath.Join(w.dir, "use"))
	was, err2 := w.use.Stat()
	if err == nil && err2 == nil && os.SameFile(now, was) {
		return
	}
	w.closeNeighbours()
	closeAll(w.use, w.lock)
	w.loaded, w.listed = nil, time.Time{}
	if err := w.openState(); err != nil {
		closeAll(w.use, w.lock)
		w.use, w.lock = nil, nil
	}
}

func (w *RootGuard) close() {
	w.handle.Close()
	w.presence.close()
	w.closeNeighbours()
	closeAll(w.use, w.lock)
}
