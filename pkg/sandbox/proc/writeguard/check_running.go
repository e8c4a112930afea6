package writeguard

import (
	"path/filepath"
	"slices"
	"time"
)

const (
	// firstCheckDelay is the run time after which checks begin. A shorter
	// command is checked only when it ends.
	firstCheckDelay = 100 * time.Millisecond
	// checkInterval is the interval between checks of a root while a command
	// runs.
	checkInterval = time.Second
)

// CheckWhileRunning reverts forbidden changes every second, and at once when a
// file appears whose name other programs trust. It returns when ended is
// closed.
func (c *Command) CheckWhileRunning(ended <-chan struct{}) {
	if len(c.roots) == 0 {
		return
	}
	select {
	case <-ended:
		return
	case <-time.After(firstCheckDelay):
	}
	var dirs []string
	for _, w := range c.roots {
		dirs = append(dirs, w.dirsToNotify()...)
	}
	var events <-chan struct{}
	if n := watchDirs(dirs, isSuspiciousName); n != nil {
		defer n.close()
		events = n.events
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for pause := time.Duration(0); ; {
		began := time.Now()
		for _, w := range c.roots {
			c.reverted = append(c.reverted, w.checkIfDue(c, pause)...)
		}
		// A command that changes files all the time must not make these checks
		// use all of the processor.
		pause = min(10*time.Since(began), checkInterval)
		select {
		case <-ended:
			return
		case <-time.After(pause):
		}
		select {
		case <-tick.C:
		case <-events:
		case <-ended:
			return
		}
	}
}

// maxNotifyDirs bounds the directories of a root that inotify watches.
const maxNotifyDirs = 200

// dirsToNotify lists the absolute paths of the directories in which new
// settings usually appear: the root, and the top directories of projects and
// repositories.
func (w *RootGuard) dirsToNotify() (dirs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dirs = append(dirs, w.root)
	for _, known := range []map[string]bool{w.baseline.Tops, w.baseline.Repos} {
		for dir := range known {
			if len(dirs) < maxNotifyDirs {
				dirs = append(dirs, filepath.Join(w.root, dir))
			}
		}
	}
	return dirs
}

// isSuspiciousName reports whether a file called name in a directory of
// dirsToNotify may make other programs run something.
func isSuspiciousName(name string) bool {
	return isProjectSettingsName(name) || isDotGitName(name) || slices.Contains([]string{"config", "config.worktree", "commondir", "hooks", ".gitmodules", reuseListName}, name)
}
