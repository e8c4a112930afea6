package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// lookEvery is the interval between checks of a root while a command runs.
const lookEvery = time.Second

// confinement holds the properties of a command that a watch needs.
type confinement struct {
	level     Level
	open      func(path string) bool // the user allows commands to write it, or the kernel protected it
	elsewhere func(path string) bool // is in another watched root
	guard     []string               // further protected files or directories
	folders   map[string]map[string]*folder
	git       userGit
}

// writeGuard compares the roots of a command with their baselines, and reverts
// changes that commands must not make.
type writeGuard struct {
	confinement
	watches []*watch // watches that count the command as running
	taken   []string
	gaps    []string
}

// guardRoots records the state of the roots before the command starts, and adds
// the paths to spec.Guard that the kernel must protect from writes. rules say
// which files the user allows commands to write.
func (r *Runner) guardRoots(s *spec, rules Rules) *writeGuard {
	w := &writeGuard{}
	w.level = s.Level
	defer func() { w.folders = nil }()
	lifted := func(string) bool { return false }
	if f, ok := rules.(interface{ WriteAllowed(abs string) bool }); ok {
		lifted = f.WriteAllowed
	}
	w.git = userGitOf(rules)
	s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool { return s.inRoot(path, stepsOfGit) })
	w.open, w.elsewhere, w.guard, w.folders = lifted, s.watchedElsewhere, slices.Clone(s.Guard), s.folders
	s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool {
		return s.inRoot(path, func(rel string) bool { return beneathName(rel, ".husky") })
	})
	for _, root := range s.Roots {
		if root.ReadOnly {
			continue
		}
		one, err := r.watch(root.Path)
		if err != nil {
			w.miss(root.Path, err)
			continue
		}
		taken, err := one.begin(&w.confinement)
		w.taken = append(w.taken, taken...)
		if err != nil {
			w.miss(root.Path, err)
		}
		if err == errBusy {
			continue
		}
		w.watches = append(w.watches, one)
		if s.Level == L2 {
			s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool { return !one.mountable(path) })
			s.guard(one.guards(), lifted)
			s.openWorktrees(root.Path)
		}
	}
	if s.Level == L2 {
		kept := w.guarded(s.Guard)
		w.open = func(path string) bool { return lifted(path) || kept(path) }
	}
	return w
}

// Watched calls do, which writes files made by commands into the roots, and
// then reverts what would be reverted after a command. taken and aside are as
// in Result.TakenBack and Result.Aside. gaps describes the roots that could
// not be watched.
func (r *Runner) Watched(rules Rules, do func()) (taken, aside, gaps []string) {
	s := &spec{Spec: supervise.Spec{Level: L1}} // no mount protects files from writes
	for _, root := range rules.Roots() {
		s.Roots = append(s.Roots, supervise.Root(root))
	}
	guard := r.guardRoots(s, rules)
	do()
	taken, aside = guard.end()
	return taken, aside, guard.gaps
}

// miss records that a root is not watched.
func (w *writeGuard) miss(root string, err error) {
	w.gaps = append(w.gaps, fmt.Sprintf("what commands leave in %s for other programs to run: %v", pathname.Escape(root), err))
}

// guard adds existing files to those that the kernel protects from writes.
func (s *spec) guard(paths []string, lifted func(string) bool) {
	for _, path := range paths {
		if lifted(path) || slices.ContainsFunc(s.Guard, func(dir string) bool { return supervise.Beneath(dir, path) }) {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			s.Guard = append(s.Guard, path)
		}
	}
}

// protected returns what is mounted read-only, if the level mounts.
func (s *spec) protected() []string {
	if s.Level != L2 {
		return nil
	}
	return s.Guard
}

// openWorktrees keeps Claude Code's work trees writable, which are below its
// protected settings.
func (s *spec) openWorktrees(root string) {
	dir := filepath.Join(root, ".claude", "worktrees")
	info, err := os.Lstat(dir)
	if err == nil && info.IsDir() && slices.Contains(s.Guard, filepath.Dir(dir)) {
		s.Writable = append(slices.Clone(s.Writable), dir)
	}
}

// guarded returns a function that reports whether the kernel protects a path:
// it is or is below a path of the baseline that is mounted read-only. Three
// cases are not protected: a mount disappears when its file is removed or
// replaced from outside, links have no mounts, and a file with a second hard
// link can be written through that.
func (w *writeGuard) guarded(paths []string) func(path string) bool {
	kept := map[string]os.FileInfo{}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 &&
			slices.ContainsFunc(w.watches, func(one *watch) bool { return one.knows(path) }) {
			kept[path] = info
		}
	}
	linked := map[string]bool{}
	for _, one := range w.watches {
		one.addLinked(linked)
	}
	return func(path string) bool {
		if linked[path] {
			return false
		}
		for ; ; path = filepath.Dir(path) {
			if was := kept[path]; was != nil {
				now, err := os.Lstat(path)
				return err == nil && os.SameFile(now, was)
			}
			if path == filepath.Dir(path) {
				return false
			}
		}
	}
}

// inRoot reports whether a path is in a root and f returns true for its name
// there.
func (s *spec) inRoot(path string, f func(rel string) bool) bool {
	return slices.ContainsFunc(s.Roots, func(root supervise.Root) bool {
		rel, err := filepath.Rel(root.Path, path)
		return err == nil && filepath.IsLocal(rel) && f(rel)
	})
}

// watchedElsewhere reports whether a path is in a root, except in directories
// where git only stores objects, refs and logs.
func (s *spec) watchedElsewhere(path string) bool {
	return s.inRoot(path, func(rel string) bool {
		return !slices.ContainsFunc([]string{"objects", "refs", "logs"}, func(name string) bool { return beneathName(rel, name) })
	})
}

// stepsOfGit reports whether a name in a root is git's index, or the state of
// an unfinished rebase or similar operation, which one command begins and
// another continues.
func stepsOfGit(rel string) bool {
	last := strings.ToLower(filepath.Base(rel))
	return beneathName(rel, ".git") && (last == "index" || strings.HasPrefix(last, "sharedindex.") || beneathName(rel, "rebase-merge") || beneathName(rel, "rebase-apply") || beneathName(rel, "sequencer"))
}

// beneathName reports whether a component of a relative path has this name,
// ignoring case.
func beneathName(rel, name string) bool {
	return slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(part string) bool { return strings.EqualFold(part, name) })
}

func firstPart(rel string) string {
	first, _, _ := strings.Cut(rel, string(filepath.Separator))
	return first
}

// watch returns the watch of a root.
func (r *Runner) watch(root string) (*watch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.watches[root]; w != nil {
		return w, nil
	}
	w, err := openWatch(root, r.config.WatchDir)
	if err != nil && r.config.WatchDir != "" {
		reason := err
		if w, err = openWatch(root, ""); err == nil {
			w.private = fmt.Errorf("other servers do not know of it, the state directory cannot be written: %w", reason)
		}
	}
	if err == nil {
		w.unseen = r.unseen
		r.watches[root] = w
	}
	return w, err
}

// checkAfter is the run time after which checks begin. A shorter command is
// checked only when it ends.
const checkAfter = 100 * time.Millisecond

// checkWhileRunning reverts forbidden changes while the command runs: every
// second, and at once when a file appears whose name other programs trust.
func (w *writeGuard) checkWhileRunning(ended <-chan struct{}) {
	if len(w.watches) == 0 {
		return
	}
	select {
	case <-ended:
		return
	case <-time.After(checkAfter):
	}
	var dirs []string
	for _, one := range w.watches {
		dirs = append(dirs, one.busyDirs()...)
	}
	var events <-chan struct{}
	if n := notify(dirs, isPlanted); n != nil {
		defer n.close()
		events = n.events
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for pause := time.Duration(0); ; {
		began := time.Now()
		for _, one := range w.watches {
			w.taken = append(w.taken, one.look(&w.confinement, pause)...)
		}
		// A command that changes files all the time must not make these checks
		// use all of the processor.
		pause = min(10*time.Since(began), lookEvery)
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

// mostBusyDirs bounds the directories of a root that inotify watches.
const mostBusyDirs = 200

// busyDirs lists the directories in which new settings usually appear.
func (w *watch) busyDirs() (dirs []string) {
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

// isPlanted reports whether a file of this name in a directory of busyDirs may
// make other programs run something.
func isPlanted(name string) bool {
	return isProjectName(name) || isDotGit(name) || slices.Contains([]string{"config", "config.worktree", "commondir", "hooks", ".gitmodules"}, name)
}

// end reverts forbidden changes after the command has ended, and returns all
// reverted files and the directories of their copies.
func (w *writeGuard) end() (taken, aside []string) {
	for _, one := range w.watches {
		taken, err := one.end(&w.confinement)
		w.taken = append(w.taken, taken...)
		if err != nil {
			w.miss(one.root, err)
		}
	}
	for _, one := range w.watches {
		if len(w.taken) > 0 && one.aside != nil && one.aside.n > 0 {
			aside = append(aside, one.aside.dir)
		}
	}
	w.watches = nil
	slices.Sort(w.taken)
	return slices.Compact(w.taken), aside
}

// endWatches closes the watches of all roots.
func (r *Runner) endWatches() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for root, w := range r.watches {
		w.close()
		delete(r.watches, root)
	}
}
