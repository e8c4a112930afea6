package writeguard

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"sync"
)

// maxShareRounds bounds how often the settings of the roots are searched for
// names in the others: an included file may include another one.
const maxShareRounds = 3

// readOnlyRoot finds git's settings in a root of the command that commands
// cannot write, because they may name files in other roots.
type readOnlyRoot struct {
	mu        sync.Mutex
	inventory inventory
}

// settingsSources lists the settings in the root. It leaves out files for which skip
// returns true.
func (r *readOnlyRoot) settingsSources(c *settingsCache, dirState func(dir string) (state DirState, ok bool), skip func(path string) bool) []settingsSource {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inventory.dirState = dirState
	defer func() { r.inventory.dirState = nil }()
	s := r.inventory.scan(nil, nil, nil, nil)
	b := baseline{Items: map[string]fileState{}, Repos: s.repos, Tops: s.tops}
	for name, at := range s.files {
		path := filepath.Join(r.inventory.root, name)
		if at.kind != gitSettingsKind && at.kind != gitPointerKind || skip(path) {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		it := stateWithoutContent(info, at)
		if at.kind == gitPointerKind {
			it = readState(path, at, info)
		} else {
			it.Runs = c.settingsThatRun(path)
		}
		b.Items[name] = it
	}
	return b.settingsSources(r.inventory.root, b.outerRepositoriesOf(r.inventory.root, c), c)
}

// readOnlyRoot returns the readOnlyRoot of the path root, the same at each
// call.
func (g *Guards) readOnlyRoot(root string) *readOnlyRoot {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.readOnly == nil {
		g.readOnly = map[string]*readOnlyRoot{}
	}
	if g.readOnly[root] == nil {
		g.readOnly[root] = &readOnlyRoot{inventory: inventory{root: root, keepModes: true, harmlessIndexes: map[string]fileState{}}}
	}
	return g.readOnly[root]
}

// AddSettingsOfOtherRoots must be called after the last Begin and before the command
// starts. It protects the files that settings of git in other roots of the
// command name. readOnly are the paths of the roots that the command cannot
// write; dirState returns for each root what Begin gets.
func (c *Command) AddSettingsOfOtherRoots(readOnly []string, dirState func(root string) func(dir string) (state DirState, ok bool)) {
	defer func() {
		for _, w := range c.roots {
			if err := w.finishBegin(); err != nil {
				c.addGap(w.root, err)
			}
		}
	}()
	if len(c.roots)+len(readOnly) < 2 || len(c.roots) == 0 {
		return
	}
	sources := map[string][]settingsSource{}
	for _, root := range readOnly {
		sources[root] = c.guards.readOnlyRoot(root).settingsSources(&c.guards.settings, dirState(root), func(path string) bool {
			for _, w := range c.roots {
				if isAtOrBelowPath(w.root, path) {
					return true
				}
			}
			return false
		})
	}
	for range maxShareRounds {
		for _, w := range c.roots {
			sources[w.root] = w.settingsSources()
		}
		changed := false
		for _, w := range c.roots {
			updated, err := w.setNamedPaths(c, sources)
			if err != nil {
				c.addGap(w.root, err)
			}
			changed = changed || updated
		}
		if !changed {
			return
		}
	}
}

// settingsSources lists the settings in the root and of the repositories around it.
func (w *RootGuard) settingsSources() []settingsSource {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.named == nil {
		return w.baseline.settingsSources(w.root, w.baseline.outerRepositoriesOf(w.root, w.settings), w.settings)
	}
	return w.baseline.settingsSources(w.root, w.named.outer, w.settings)
}

// setNamedPaths adds the paths in the root that the settings of other roots name to
// the baseline, and reports whether they changed. It does nothing while another
// command runs in the root. Paths that roots of other servers name are kept as
// long as these roots exist.
func (w *RootGuard) setNamedPaths(c *Command, sources map[string][]settingsSource) (changed bool, err error) {
	w.mu.Lock()
	named := map[string]namedPaths{}
	for root, paths := range w.baseline.Named {
		if _, err := os.Lstat(root); err == nil {
			named[root] = paths
		}
	}
	for root, list := range sources {
		if root == w.root {
			continue
		}
		p := w.baseline.newGitPaths(w.root, w.git, nil, w.settings)
		if w.named != nil {
			p.pathResolver = w.named.pathResolver
		}
		for _, s := range list {
			if s.repo != "" { // an included file is added with the settings that include it
				p.addSource(s)
			}
		}
		p.sortLists()
		delete(named, root)
		if len(p.HookDirs)+len(p.SettingsFiles)+len(p.Programs) > 0 {
			named[root] = p.namedPaths
		}
	}
	same := len(named) == len(w.baseline.Named) && maps.EqualFunc(named, w.baseline.Named, func(a, b namedPaths) bool { return reflect.DeepEqual(a, b) })
	w.mu.Unlock()
	if same {
		return false, nil
	}
	if err := w.lock(); err != nil {
		return false, err
	}
	defer w.unlock()
	if !w.begunAlone || w.runningCount != 1 {
		return false, nil
	}
	previous := w.previousItems
	w.baseline.Named, w.loadedInfo = named, nil // so that the baseline is stored
	err = w.updateBaseline(c.Protected)
	w.previousItems = previous
	return true, err
}

// finishBegin ends the registration of a command: it restores the steps of
// unfinished rebases.
func (w *RootGuard) finishBegin() error {
	w.mu.Lock()
	missing := w.stepsMissing
	w.named = nil
	w.mu.Unlock()
	if !missing {
		return nil
	}
	if err := w.lock(); err != nil {
		return err
	}
	defer w.unlock()
	w.stepsMissing = false
	if w.restoreRebaseSteps() {
		return w.saveBaseline()
	}
	return nil
}
