package writeguard

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// judge compares a root with its baseline, and reverts changes that commands
// must not make.
type judge struct {
	root       string
	handle     *os.Root
	base       *baseline
	found      *survey
	trustTimes bool
	// open reports whether a file is skipped: the user allows commands to
	// write it, or the kernel protected it.
	open func(path string) bool
	// elsewhere reports whether a path outside the root is in another watched
	// root.
	elsewhere func(path string) bool
	aside     *aside
	checked   map[string]item // see inventory

	ended bool // the command has ended, so that its unfinished rebase is judged

	renamed []string // directories in which links in place of earlier directories lead

	taken  []string // absolute paths of reverted files
	held   bool     // base.Steps has changed
	failed bool     // something could not be reverted
}

// run judges the files that were found and those of the baseline that are
// missing.
func (j *judge) run() {
	j.renamed = j.replaced()
	names := slices.Collect(maps.Keys(j.found.spots))
	for name := range j.base.Items {
		if _, ok := j.found.spots[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(j.root, name)
		if !j.open(path) {
			j.file(name, path)
		}
	}
	for _, name := range j.found.indexes {
		j.index(name)
	}
}

// file judges one file. It does nothing if the file is unchanged.
func (j *judge) file(name, path string) {
	at := j.found.spots[name]
	was, had := j.base.Items[name]
	if at.kind == 0 {
		at = spot{was.Spot, was.Repo}
	}
	info, err := os.Lstat(path)
	var now item
	if err == nil {
		now = stampOf(info, at)
		if had && j.trustTimes && was.sameStamp(&now) && was.Size <= keptBytes {
			return
		}
		now = readItem(path, at, info)
		if had && was.same(&now) && at.kind != pointerKind {
			if now.Links > was.Links && now.Mode.IsRegular() { // another name could be written through
				j.restore(name, path, &was)
			}
			return
		}
		_, err = os.Lstat(path) // a running command may have removed it before the read
	}
	if err != nil {
		if had && j.misses(name, &was) {
			j.restore(name, path, &was)
		}
		return
	}
	j.changed(name, path, at, had, &was, &now)
}

// changed judges a file that is new or differs from the baseline. had is false
// for a new file, and was is then the zero value.
func (j *judge) changed(name, path string, at spot, had bool, was, now *item) {
	switch at.kind {
	case settingsKind:
		j.settings(name, path, had, was, now)
	case pointerKind:
		if had && was.same(now) || j.leadsWell(name, path, at.repo) {
			return
		}
		j.undo(name, path, had, was)
	case linkKind:
		if had || !j.linksWell(name, path, at.repo) {
			j.undo(name, path, had, was)
		}
	case optionsKind:
		if runs, ok := gitfile.OptionsRun(filepath.Base(name), now.Content); runs || !ok {
			j.undo(name, path, had, was)
		}
	case stepsKind:
		if j.ended {
			j.steps(name, path, was, now)
		}
	case hookKind:
		runs := now.Mode.Perm()&0o111 != 0 || !now.Mode.IsRegular()
		if had || j.base.Repos[at.repo] || runs {
			j.undo(name, path, had, was)
		}
	case attributesKind:
		if had || j.base.Repos[at.repo] {
			j.undo(name, path, had, was)
		}
	case projectKind:
		if had || j.base.Tops[at.repo] || j.base.Seen.has(keyOf(at.repo)) || slices.ContainsFunc(j.renamed, func(dir string) bool { return within(dir, at.repo) }) || slices.Contains(j.base.HookDirs, at.repo) || slices.Contains(j.base.Programs, name) {
			j.undo(name, path, had, was)
		}
	}
}

// misses reports whether a missing file must be restored. Commands may delete
// settings of git, a .git, commondir or gitdir, and a whole repository.
func (j *judge) misses(name string, was *item) bool {
	switch was.Spot {
	case hookKind, attributesKind:
		return j.found.repos[was.Repo]
	case projectKind:
		if InRepository(name) || slices.Contains(j.base.Programs, name) {
			return false // git worktree remove, git checkout
		}
		_, err := os.Lstat(filepath.Join(j.root, was.Repo))
		return err == nil || slices.Contains(j.base.HookDirs, was.Repo)
	}
	return false
}
