package writeguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
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

// The marks of a root.
const (
	markIdle = ' '
	markL2   = '2' // commands ran only at L2
	markL1   = '1'
)

func markOf(level supervise.Level) byte {
	if level == supervise.L1 {
		return markL1
	}
	return markL2
}

// lockWait bounds the wait for another server that searches a root.
const lockWait = 20 * time.Second

var errBusy = errors.New("another server has been looking through the root for too long")

// enter takes the lock of the baseline. It returns errBusy after lockWait.
func (w *RootGuard) enter() error {
	w.mu.Lock()
	for began := time.Now(); w.lock != nil && !flock(w.lock, lockExclusive); time.Sleep(time.Millisecond) {
		if time.Since(began) > lockWait {
			w.mu.Unlock()
			return errBusy
		}
	}
	if now, err := os.Lstat(w.root); err == nil && !fileinfo.IsOpenOn(w.handle, now) { // another directory has its name
		if handle, err := os.OpenRoot(w.root); err == nil {
			w.handle.Close()
			w.handle = handle
		}
	}
	return nil
}

func (w *RootGuard) leave() {
	if w.lock != nil {
		flock(w.lock, lockNone)
	}
	w.mu.Unlock()
}

// alone takes the root exclusively. It returns false if a command of another
// server or of this one is running in it.
func (w *RootGuard) alone() bool {
	return w.running == 0 && (w.use == nil || flock(w.use, lockExclusive))
}

// share shows other servers that a command runs, until rest.
func (w *RootGuard) share() {
	if w.use != nil && w.running == 0 {
		flock(w.use, lockShared)
	}
	w.running++
}

func (w *RootGuard) readMark() byte {
	if w.use == nil {
		return w.mark
	}
	var b [1]byte
	if n, _ := w.use.ReadAt(b[:], 0); n == 1 {
		return b[0]
	}
	return markIdle
}

func (w *RootGuard) writeMark(mark byte) error {
	w.mark = mark
	if w.use == nil {
		return nil
	}
	_, err := w.use.WriteAt([]byte{mark}, 0)
	return err
}

// refresh reads the baseline if another server has written it.
func (w *RootGuard) refresh() {
	if w.dir == "" {
		return
	}
	info, err := os.Stat(w.file())
	if err != nil || w.loaded != nil && sameVersion(info, w.loaded) {
		return
	}
	if w.base.load(w.file()) == nil {
		w.loaded, w.fresh = info, true
	}
}

func (w *RootGuard) file() string { return filepath.Join(w.dir, "baseline") }

// mostIncludes bounds the depth of includes in settings files, as git does.
const mostIncludes = 10

// adoptTries bounds the attempts to read a root while commands of other
// servers begin or end.
const adoptTries = 3

// adopt makes the root's current state the baseline, except for changes since
// a command of another server or in an overlapping root began.
func (w *RootGuard) adopt(guard []string) error {
	defer w.inventory.shut()
	before, known, began := w.base, w.fresh, fileClock()
	var d *doubts
	changed := false
	for try := 1; ; try++ {
		d, w.base = w.doubts(known), before
		if try == adoptTries {
			d.running = append(d.running, doubt{since: began})
		}
		if changed = w.adoptOnce(guard, d); !changed || try == adoptTries {
			break
		}
		// A command that ran meanwhile either still runs, or was judged, which
		// restores the files.
		if again := w.doubts(known); d.equal(again) && !w.base.movedSince(w.root, &before) {
			break
		}
		w.inventory.recent = nil
	}
	if d.none() {
		w.inventory.trustIndexes()
	}
	changed = w.base.forgetMade(w.root) || changed
	if changed || w.base.Dirs == nil {
		w.base.note(w.root, !d.none())
		changed = true
	}
	if w.dir == "" || !changed && w.fresh && w.loaded != nil {
		w.fresh = true
		return nil
	}
	w.base.Kept = map[string][2]uint64{}
	for _, path := range w.guarded() {
		if node, ok := holderOf(path); ok {
			w.base.Kept[path] = node
		}
	}
	w.fresh = true
	return w.save()
}

// save writes the baseline for other servers, if there is a state directory.
func (w *RootGuard) save() error {
	if w.dir == "" {
		return nil
	}
	err := w.base.save(w.file())
	if err == nil {
		w.loaded, err = os.Stat(w.file())
	}
	return err
}

// adoptOnce makes the root's current state the baseline, except for the files
// in doubt. The adopted settings may name further directories and files, so it
// repeats until they do not. It reports whether the baseline changed.
func (w *RootGuard) adoptOnce(guard []string, d *doubts) (changed bool) {
	changed = w.base.adopt(w.root, w.inventory.take(w.base.HookDirs, w.base.Included, w.base.Programs, guard), w.trustTimes, d)
	for range mostIncludes {
		p := w.base.gitPlaces(w.root, w.git)
		if slices.Equal(p.hookDirs, w.base.HookDirs) && slices.Equal(p.included, w.base.Included) && slices.Equal(p.programs, w.base.Programs) {
			break
		}
		w.base.HookDirs, w.base.Included, w.base.Programs, changed = p.hookDirs, p.included, p.programs, true
		w.base.adopt(w.root, w.inventory.take(p.hookDirs, p.included, p.programs, guard), w.trustTimes, d)
	}
	return changed
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

// judgeKilled reverts the changes that the commands of a killed server left
// behind.
func (w *RootGuard) judgeKilled(c *Command, mark byte) *judge {
	return w.judge(c, true, func(path string) bool { return c.open(path) || mark == markL2 && w.guardedAtL2(path) })
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

// mostBusyDirs bounds the directories of a root that inotify watches.
const mostBusyDirs = 200

// busyDirs lists the directories in which new settings usually appear.
func (w *RootGuard) busyDirs() (dirs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dirs = append(dirs, w.root)
	for _, known := range []map[string]bool{w.base.Tops, w.base.Repos} {
		for dir := range known {
			if len(dirs) < mostBusyDirs {
				dirs = append(dirs, filepath.Join(w.root, dir))
			}
		}
	}
	return dirs
}
