package writeguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// RootGuard compares a root with its baseline. A runner has one for each root.
// Servers with the same state directory share the baseline through these
// files:
//
//	baseline  the root as the user left it
//	lock      held while the baseline is compared or replaced
//	use       locked, shared, while a command runs; contains the highest
//	          of the marks below since no command ran
//	aside/    copies of reverted files
//	root      the root's path
//
// Changes while no command runs are the user's, and become the baseline. If
// the mark shows that a command ran and nobody holds the lock of use, a
// command made the changes and its server was killed: they are judged first.
//
// Commands of other servers may also run in this root: see neighbour for
// overlapping roots, and presence for other state directories.
type RootGuard struct {
	root, dir  string // dir "": shared only by this runner's commands
	handle     *os.Root
	trustTimes bool

	mu        sync.Mutex
	inventory inventory
	base      baseline
	git       UserGit
	loaded    os.FileInfo // the file that base was read from or written to
	fresh     bool        // base is the root's baseline; false: it is empty because there is none
	use, lock *os.File
	running   int
	looked    map[supervise.Level]time.Time
	aside     *aside
	mark      byte

	private      error // why the baseline is not shared with other servers
	unseen       bool  // see Runner
	presence     *presence
	near         []*neighbour
	listed, read time.Time // state directory's time of change, and time when near was read
}

// begin registers the start of a command. It returns the files that it
// reverted because the command of a killed server had changed them.
func (w *RootGuard) begin(c *Command, dirChanged func(dir string) (changed int64, closed, ok bool)) (taken []string, err error) {
	taken, err = w.enterAmong(c)
	if err != nil {
		return taken, err
	}
	defer func() { err = errors.Join(err, w.private) }()
	defer w.leave()
	w.git = c.Git
	defer w.unlockNeighbours()
	w.refresh()
	mark := w.readMark()
	if w.running == 0 && !w.unseen {
		w.presence.publish()
	}
	alone := w.alone()
	defer w.share()
	if !alone && w.fresh {
		if markOf(c.Level) < mark { // '1' < '2'
			err = w.writeMark(markOf(c.Level))
		}
		return taken, err
	}
	if mark == markIdle {
		w.inventory.recent = dirChanged
		defer func() { w.inventory.recent = nil }()
	}
	if alone && w.fresh && mark != markIdle {
		j := w.judgeKilled(c, mark)
		taken = append(taken, j.taken...)
		if j.failed {
			return taken, w.writeMark(min(mark, markOf(c.Level)))
		}
	}
	if err = w.adopt(c.Protected); err == nil && (alone || markOf(c.Level) < mark) {
		err = w.writeMark(markOf(c.Level))
	}
	if err == nil && w.giveSteps() {
		err = w.save()
	}
	return taken, err
}

// addLinked adds the paths of files that have several hard links.
func (w *RootGuard) addLinked(paths map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, it := range w.base.Items {
		if it.Links > 1 {
			paths[filepath.Join(w.root, name)] = true
		}
	}
}

// judge compares the root with the baseline and reverts forbidden changes.
// ended is false while the command runs.
func (w *RootGuard) judge(c *Command, ended bool, open func(string) bool) *judge {
	defer w.inventory.shut()
	j := &judge{
		root: w.root, handle: w.handle, base: &w.base, found: w.inventory.take(w.base.HookDirs, w.base.Included, w.base.Programs, c.Protected), trustTimes: w.trustTimes,
		open: open, elsewhere: c.Watched, aside: w.aside, checked: w.inventory.checked, ended: ended,
	}
	if j.bringUp(); len(j.taken) > 0 {
		j.found = w.inventory.take(w.base.HookDirs, w.base.Included, w.base.Programs, c.Protected)
	}
	j.run()
	return j
}

// look judges while commands run. It does nothing if another command of the
// level did so within this time.
func (w *RootGuard) look(c *Command, within time.Duration) (taken []string) {
	if w.enter() != nil {
		return nil
	}
	defer w.leave()
	if last, ok := w.looked[c.Level]; ok && time.Since(last) < within {
		return nil
	}
	w.refresh()
	taken = w.judge(c, false, c.open).taken
	w.looked[c.Level] = time.Now()
	return taken
}

// end judges the changes of an ended command, and registers its end.
func (w *RootGuard) end(c *Command) (taken []string, err error) {
	if err := w.enter(); err != nil {
		return nil, err
	}
	defer w.leave()
	w.refresh()
	j := w.judge(c, true, c.open)
	if made := w.fresh && !j.failed && w.base.noteMade(w.root, j.found); made || j.held {
		err = w.save()
	}
	w.running--
	if w.running == 0 {
		if w.alone() && !j.failed { // else the next command starts with this baseline
			err = errors.Join(err, w.writeMark(markIdle))
		}
		if w.use != nil {
			flock(w.use, lockNone)
		}
		w.presence.withdraw()
	}
	if j.failed {
		err = errors.Join(err, errors.New("some of it could not be taken back"))
	}
	if !j.found.whole {
		err = errors.Join(err, fmt.Errorf("it has more than %d entries", scanEntries))
	}
	return j.taken, err
}

// knows reports whether the baseline contains a path or a file below it.
func (w *RootGuard) knows(path string) bool {
	name, err := filepath.Rel(w.root, path)
	if err != nil || !filepath.IsLocal(name) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.base.Repos[filepath.Dir(name)] && filepath.Base(name) == "hooks" {
		return true
	}
	for item := range w.base.Items {
		if within(name, item) {
			return true
		}
	}
	return false
}
