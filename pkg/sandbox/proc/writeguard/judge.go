package writeguard

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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

// replaced lists the directories to which links lead that took the place of a
// directory of the baseline.
func (j *judge) replaced() (dirs []string) {
	for _, link := range j.found.links {
		if !j.base.Seen.has(keyOf(link)) {
			continue
		}
		if dir, err := filepath.Rel(j.root, realPath(filepath.Join(j.root, link))); err == nil && filepath.IsLocal(dir) && dir != "." {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// maxIndex bounds how much of a git index is read, in bytes. The entries must
// be within it.
const maxIndex = 256 << 20

// index removes a git index with entries that git would write into a
// repository's own directory, or that cannot be read. The user can rebuild the index with git reset.
func (j *judge) index(name string) {
	path := filepath.Join(j.root, name)
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	now := stampOf(info, spot{})
	if was, ok := j.checked[name]; ok && j.trustTimes && was.sameStamp(&now) {
		return
	}
	content, err := readRegular(path, maxIndex)
	if err != nil && !errors.Is(err, syscall.EFBIG) {
		return
	}
	if escaping, ok := gitfile.IndexEscapes(content); escaping == "" && ok {
		j.checked[name] = now
		return
	}
	j.aside.keep(path, content)
	j.done(path, j.retry(name, func() error { return j.remove(name) }))
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

// leadsWell reports whether a .git or commondir names a watched repository, a
// gitdir the .git of a work tree, or either a path that does not exist or is in
// another watched root. Files that appear there later are judged as new.
func (j *judge) leadsWell(name, path, repo string) bool {
	if filepath.Base(name) == "commondir" && j.base.Repos[repo] {
		return false // git only makes it together with the repository
	}
	target := pointerTarget(path)
	if target == "" {
		return true // git ignores it
	}
	real, err := filepath.EvalSymlinks(target)
	if err != nil {
		real = filepath.Clean(target)
	}
	if rel, err := filepath.Rel(j.root, real); err == nil && filepath.IsLocal(rel) {
		if filepath.Base(name) == "gitdir" {
			return isDotGit(filepath.Base(rel)) && (j.found.spots[rel].kind == pointerKind || !exists(real))
		}
		return j.found.repos[rel] || !exists(real)
	}
	return j.elsewhere(real)
}

// linksWell reports whether a link in a repository leads to the same name in
// another repository of the root, as in a work tree that shares the other's
// refs, or is a HEAD that leads to a branch.
func (j *judge) linksWell(name, path, repo string) bool {
	rel, err := filepath.Rel(repo, name)
	if err != nil {
		return false
	}
	real, err := filepath.Rel(j.root, realPath(path))
	if err != nil || !filepath.IsLocal(real) || real == name {
		return false
	}
	if rel == "HEAD" && within(filepath.Join(repo, "refs", "heads"), real) {
		return true
	}
	for other := range j.found.repos {
		if same, err := filepath.Rel(other, real); err == nil && same == rel && other != repo {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// settings judges changed or new git settings.
func (j *judge) settings(name, path string, had bool, was, now *item) {
	if !now.Mode.IsRegular() || now.Size > keptBytes {
		j.undo(name, path, had, was)
		return
	}
	runs, ok := gitfile.Runs(now.Content)
	unwanted := func(setting string) bool {
		return slices.Contains(runs, setting) && !slices.Contains(was.Runs, setting) && (had || !j.worktreeInside(setting, now.Repo))
	}
	gone := slices.ContainsFunc(was.Runs, func(setting string) bool { return !slices.Contains(runs, setting) })
	switch {
	case ok && !slices.ContainsFunc(runs, unwanted):
		return
	case !ok || gone:
		j.undo(name, path, had, was)
		return
	}
	stripped := gitfile.Without(now.Content, slices.DeleteFunc(slices.Clone(runs), func(setting string) bool { return !unwanted(setting) }))
	if left, ok := gitfile.Runs(stripped); !ok || slices.ContainsFunc(left, unwanted) {
		j.undo(name, path, had, was)
		return
	}
	if before, _ := gitfile.Values(was.Content); had {
		if after, _ := gitfile.Values(stripped); slices.Equal(before, after) {
			stripped = was.Content
		}
	} else if after, _ := gitfile.Values(stripped); len(after) == 0 {
		j.undo(name, path, had, was)
		return
	}
	j.aside.keep(path, now.Content)
	j.done(path, j.retry(name, func() error { return j.write(name, stripped, now.Mode.Perm()|0o400) }))
}

// worktreeInside reports whether a setting is the work tree of a submodule, in
// the root.
func (j *judge) worktreeInside(setting, repo string) bool {
	value, ok := strings.CutPrefix(setting, "core.worktree=")
	if !ok {
		return false
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(j.root, repo, value)
	}
	if real, err := filepath.EvalSymlinks(value); err == nil {
		value = real
	}
	rel, err := filepath.Rel(j.root, value)
	return err == nil && filepath.IsLocal(rel)
}

// undo stores a copy of a file aside, then restores its recorded state, or
// removes it if had is false.
func (j *judge) undo(name, path string, had bool, was *item) {
	if info, err := os.Lstat(path); err == nil {
		it := readItem(path, spot{}, info)
		j.aside.keep(path, it.Content)
	}
	if had {
		j.restore(name, path, was)
		return
	}
	j.done(path, j.retry(name, func() error { return j.remove(name) }))
}

// done records the result of a revert: the path, or the failure if err is not
// nil.
func (j *judge) done(path string, err error) {
	if err != nil {
		j.failed = true
		return
	}
	j.taken = append(j.taken, path)
}

// retry calls do. If permissions prevent it, retry makes the directories above
// the file accessible and calls do again: a command may have removed their
// permissions to prevent the revert.
func (j *judge) retry(name string, do func() error) error {
	err := do()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	dirs := []string{"."}
	for at := range name {
		if at > 0 && os.IsPathSeparator(name[at]) {
			dirs = append(dirs, name[:at])
		}
	}
	for _, dir := range dirs {
		if info, err := j.handle.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
			j.handle.Chmod(dir, info.Mode().Perm()|0o700) //nolint:errcheck // if it fails, so does the second call
		}
	}
	return do()
}

// remove removes a file, and then the directories of settings that became
// empty.
func (j *judge) remove(name string) error {
	if err := j.unlink(name); err != nil {
		return err
	}
	if err := j.handle.RemoveAll(name); err != nil {
		return err
	}
	for dir := filepath.Dir(name); j.found.spots[name].kind == projectKind && dir != j.found.spots[name].repo; dir = filepath.Dir(dir) {
		if j.handle.Remove(dir) != nil { // it has other entries
			break
		}
	}
	return nil
}

// unlink removes links that a command made in place of the directories above a
// file.
func (j *judge) unlink(name string) error {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := j.handle.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := j.handle.Remove(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore restores a file's recorded state. It fails for files larger than
// keptBytes.
func (j *judge) restore(name, path string, was *item) {
	if was.Size > keptBytes {
		j.failed = true
		return
	}
	j.done(path, j.retry(name, func() error { return j.putBack(name, was) }))
}

func (j *judge) putBack(name string, was *item) error {
	if was.Mode&fs.ModeSymlink == 0 {
		return j.write(name, was.Content, was.Mode.Perm())
	}
	if err := j.clear(name); err != nil {
		return err
	}
	return j.handle.Symlink(string(was.Content), name)
}

// clear removes the file or directory at a name, and makes the directory above
// it.
func (j *judge) clear(name string) error {
	if err := j.unlink(name); err != nil {
		return err
	}
	if err := j.handle.RemoveAll(name); err != nil {
		return err
	}
	return j.handle.MkdirAll(filepath.Dir(name), 0o755)
}

// write replaces a file atomically: the user's programs see the old or the new
// content.
func (j *judge) write(name string, content []byte, mode fs.FileMode) error {
	if err := j.unlink(name); err != nil {
		return err
	}
	if err := j.handle.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(name), ".toolroom-"+rand.Text())
	f, err := j.handle.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		if info, err := j.handle.Lstat(name); err == nil && info.IsDir() {
			j.handle.RemoveAll(name) //nolint:errcheck // otherwise the renaming fails
		}
		err = j.handle.Rename(next, name)
	}
	if err != nil {
		j.handle.Remove(next) //nolint:errcheck // err is the reason to report
	}
	return err
}
