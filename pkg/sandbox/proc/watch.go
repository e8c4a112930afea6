package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// watch compares a root with its baseline. There is one for each root of a
// runner; those of other servers with the same state directory share the
// baseline by files:
//
//	baseline  the root as the user left it
//	lock      held while the baseline is compared or replaced
//	use       held, shared, while a command runs; begins with the highest
//	          of the marks below since no command ran
//	aside/    what was taken back
//	root      the root's path
//
// What changes while no command runs is the user's, and becomes the baseline.
// What changed when the mark says that a command ran, and nobody holds the
// lock, is a command's whose server was killed: it is judged first.
//
// Commands run in this root also by servers whose roots overlap with it, see
// neighbour, or whose state directory is another one, see presence.
type watch struct {
	root, dir  string // dir "": shared by this runner's commands alone
	handle     *os.Root
	trustTimes bool

	mu        sync.Mutex
	inventory inventory
	base      baseline
	git       userGit
	loaded    os.FileInfo // the file that base was read from or written to
	fresh     bool        // base is a root's, and not empty because none is known
	use, lock *os.File
	running   int
	looked    map[Level]time.Time
	aside     *aside
	mark      byte

	private      error // why the baseline is not shared with other servers
	unseen       bool  // see Runner
	presence     *presence
	near         []*neighbour
	listed, read time.Time // the state directory's time of change, and when near was read
}

// The marks of a root.
const (
	markIdle = ' '
	markL2   = '2' // commands ran at L2 only
	markL1   = '1'
)

func markOf(level Level) byte {
	if level == L1 {
		return markL1
	}
	return markL2
}

// lockWait bounds the wait for another server that looks through a root.
const lockWait = 20 * time.Second

var errBusy = errors.New("another server has been looking through the root for too long")

// enter takes the lock of the baseline.
func (w *watch) enter() error {
	w.mu.Lock()
	for began := time.Now(); w.lock != nil && !flock(w.lock, lockExclusive); time.Sleep(time.Millisecond) {
		if time.Since(began) > lockWait {
			w.mu.Unlock()
			return errBusy
		}
	}
	if now, err := os.Lstat(w.root); err == nil && !isDir(w.handle, now) { // another has its name
		if handle, err := os.OpenRoot(w.root); err == nil {
			w.handle.Close()
			w.handle = handle
		}
	}
	return nil
}

func (w *watch) leave() {
	if w.lock != nil {
		flock(w.lock, lockNone)
	}
	w.mu.Unlock()
}

// alone takes the root for itself, if no command of any server runs in it.
func (w *watch) alone() bool {
	return w.running == 0 && (w.use == nil || flock(w.use, lockExclusive))
}

// share says that a command runs, from now on and until rest.
func (w *watch) share() {
	if w.use != nil && w.running == 0 {
		flock(w.use, lockShared)
	}
	w.running++
}

func (w *watch) readMark() byte {
	if w.use == nil {
		return w.mark
	}
	var b [1]byte
	if n, _ := w.use.ReadAt(b[:], 0); n == 1 {
		return b[0]
	}
	return markIdle
}

func (w *watch) writeMark(mark byte) error {
	w.mark = mark
	if w.use == nil {
		return nil
	}
	_, err := w.use.WriteAt([]byte{mark}, 0)
	return err
}

// refresh reads the baseline if another server has written it.
func (w *watch) refresh() {
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

func (w *watch) file() string { return filepath.Join(w.dir, "baseline") }

// mostIncludes bounds how deep files with settings include each other (as git).
const mostIncludes = 10

// adoptTries bounds how often a root is read again because a command of another
// server began or ended meanwhile.
const adoptTries = 3

// adopt takes the root as it is for the user's own, except for what changed
// since a command of another server or in an overlapping root began to run.
func (w *watch) adopt(guard []string) error {
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
		// A command that ran meanwhile is still there, or was judged, which
		// puts its files back.
		if again := w.doubts(known); d.equal(again) && !w.base.movedSince(w.root, &before) {
			break
		}
		w.inventory.recent = nil
	}
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
	err := w.base.save(w.file())
	if err == nil {
		w.loaded, err = os.Stat(w.file())
	}
	w.fresh = true
	return err
}

func (w *watch) adoptOnce(guard []string, d *doubts) (changed bool) {
	changed = w.base.adopt(w.root, w.inventory.take(w.base.HookDirs, w.base.Included, guard), w.trustTimes, d)
	for range mostIncludes {
		dirs, files := w.base.gitPlaces(w.root, w.git)
		if slices.Equal(dirs, w.base.HookDirs) && slices.Equal(files, w.base.Included) {
			break
		}
		w.base.HookDirs, w.base.Included, changed = dirs, files, true
		w.base.adopt(w.root, w.inventory.take(dirs, files, guard), w.trustTimes, d)
	}
	return changed
}

// begin says that a command starts, and returns what was taken back of what
// the command of a killed server had left, and where that is kept.
func (w *watch) begin(c *confinement) (taken []string, err error) {
	taken, err = w.enterAmong(c)
	if err != nil {
		return taken, err
	}
	defer func() { err = errors.Join(err, w.private) }()
	defer w.leave()
	w.git = c.git
	defer w.unlockNeighbours()
	w.refresh()
	mark := w.readMark()
	if w.running == 0 && !w.unseen {
		w.presence.publish()
	}
	alone := w.alone()
	defer w.share()
	if !alone && w.fresh {
		if markOf(c.level) < mark { // 1 is before 2
			err = w.writeMark(markOf(c.level))
		}
		return taken, err
	}
	if mark == markIdle {
		w.inventory.recent = c.folders[w.root]
		defer func() { w.inventory.recent = nil }()
	}
	if alone && w.fresh && mark != markIdle {
		j := w.judgeKilled(c, mark)
		taken = append(taken, j.taken...)
		if j.failed {
			return taken, w.writeMark(min(mark, markOf(c.level)))
		}
	}
	if err = w.adopt(c.guard); err == nil && (alone || markOf(c.level) < mark) {
		err = w.writeMark(markOf(c.level))
	}
	return taken, err
}

// judgeKilled takes back what the commands of a killed server have left.
func (w *watch) judgeKilled(c *confinement, mark byte) *judge {
	return w.judge(c, func(path string) bool { return c.open(path) || mark == markL2 && w.guardedAtL2(path) })
}

// guardedAtL2 reports whether no command at L2 could change a file of the
// baseline, so that a change is the user's.
func (w *watch) guardedAtL2(path string) bool {
	rel, err := filepath.Rel(w.root, path)
	if err != nil {
		return false
	}
	was, had := w.base.Items[rel]
	if !had || was.Spot == settingsKind || was.Links > 1 || beneathName(rel, ".husky") {
		return false
	}
	for at := path; supervise.Beneath(w.root, at) && at != w.root; at = filepath.Dir(at) {
		if node, ok := w.base.Kept[at]; ok {
			now, ok := holderOf(at)
			return ok && now == node
		}
	}
	return false
}

// holderOf returns the node that a mount over a path goes with: a directory's
// own, of anything else that of the directory above. A command cannot replace
// what is mounted over, but what holds it. Links are not mounted over.
func holderOf(path string) (node [2]uint64, ok bool) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		return node, false
	}
	if err != nil || !info.IsDir() {
		if info, err = os.Lstat(filepath.Dir(path)); err != nil {
			return node, false
		}
	}
	return nodeOf(info), true
}

// addLinked adds the paths of files that have a second name.
func (w *watch) addLinked(paths map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, it := range w.base.Items {
		if it.Links > 1 {
			paths[filepath.Join(w.root, name)] = true
		}
	}
}

// judge compares the root with the baseline and takes back what is not to be.
func (w *watch) judge(c *confinement, open func(string) bool) *judge {
	defer w.inventory.shut()
	j := &judge{
		root: w.root, handle: w.handle, base: &w.base, found: w.inventory.take(w.base.HookDirs, w.base.Included, c.guard), trustTimes: w.trustTimes,
		open: open, elsewhere: c.elsewhere, aside: w.aside, checked: w.inventory.checked,
	}
	j.run()
	return j
}

// look judges while commands run, unless another command of the level has had
// that done within a time.
func (w *watch) look(c *confinement, within time.Duration) (taken []string) {
	if w.enter() != nil {
		return nil
	}
	defer w.leave()
	if last, ok := w.looked[c.level]; ok && time.Since(last) < within {
		return nil
	}
	w.refresh()
	taken = w.judge(c, c.open).taken
	w.looked[c.level] = time.Now()
	return taken
}

// end judges what a command has left, and says that it has ended.
func (w *watch) end(c *confinement) (taken []string, err error) {
	if err := w.enter(); err != nil {
		return nil, err
	}
	defer w.leave()
	w.refresh()
	j := w.judge(c, c.open)
	w.running--
	if w.running == 0 {
		if w.alone() && !j.failed { // else the next command starts with this baseline
			err = w.writeMark(markIdle)
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

// knows reports whether a path, or something beneath, is of the baseline.
func (w *watch) knows(path string) bool {
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

// guards lists what of the root commands at L2 must not write: what git and
// other programs run, except for git's settings, which git itself replaces.
func (w *watch) guards() (paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.guarded()
}

func (w *watch) guarded() (paths []string) {
	for repo := range w.base.Repos {
		for _, name := range []string{"hooks", "info/attributes", "commondir"} {
			paths = append(paths, filepath.Join(w.root, repo, name))
		}
	}
	for _, dir := range w.base.HookDirs {
		paths = append(paths, filepath.Join(w.root, dir))
	}
	for name, it := range w.base.Items {
		switch {
		case it.Spot == projectKind && !slices.Contains(w.base.HookDirs, it.Repo):
			rel, err := filepath.Rel(it.Repo, name)
			if err != nil {
				continue
			}
			paths = append(paths, filepath.Join(w.root, it.Repo, firstPart(rel)))
		case it.Spot == pointerKind, it.Spot == settingsKind && it.Size > keptBytes:
			paths = append(paths, filepath.Join(w.root, name))
		}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		rel, err := filepath.Rel(w.root, path)
		return err != nil || beneathName(rel, ".husky") || supervise.Beneath(path, w.root)
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}
