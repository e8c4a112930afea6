package writeguard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// MountPaths lists the paths of the root that commands at L2 must not write: files
// that make git and other programs run something, except for git's settings and
// the files that lead to a repository, which git itself replaces and removes.
func (w *RootGuard) MountPaths() (paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.guarded()
}

func (w *RootGuard) guarded() (paths []string) {
	for repo := range w.base.Repos {
		for _, name := range []string{"hooks", "info/attributes"} {
			paths = append(paths, filepath.Join(w.root, repo, name))
		}
	}
	for _, dir := range w.base.HookDirs {
		paths = append(paths, filepath.Join(w.root, dir))
	}
	for name, it := range w.base.Items {
		switch {
		case slices.Contains(w.base.Programs, name): // git checkout and make replace them
		case it.Spot == projectKind && !slices.Contains(w.base.HookDirs, it.Repo):
			rel, err := filepath.Rel(it.Repo, name)
			if err != nil {
				continue
			}
			paths = append(paths, filepath.Join(w.root, it.Repo, firstPart(rel)))
		case it.Spot == settingsKind && it.Size > keptBytes:
			paths = append(paths, filepath.Join(w.root, name))
		}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		rel, err := filepath.Rel(w.root, path)
		return err != nil || w.base.madeByCommands(rel) || HasComponent(rel, ".husky") || supervise.Beneath(path, w.root)
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Mountable reports whether a file of the root can be mounted read-only for a
// command. The files that lead git to a repository cannot: a mount would keep git
// worktree remove, git submodule deinit and the removal or renaming of a work
// tree from working. Nor can those of repositories that commands created. They
// are judged instead.
func (w *RootGuard) Mountable(path string) bool {
	rel, err := filepath.Rel(w.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return true
	}
	switch strings.ToLower(filepath.Base(rel)) {
	case ".git":
		return false
	case "commondir", "gitdir":
		if HasComponent(rel, ".git") {
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.base.madeByCommands(rel)
}

// guardedAtL2 reports whether the kernel protected a file of the baseline from
// all commands at L2, so that its change is the user's.
func (w *RootGuard) guardedAtL2(path string) bool {
	rel, err := filepath.Rel(w.root, path)
	if err != nil {
		return false
	}
	was, had := w.base.Items[rel]
	if !had || was.Spot == settingsKind || was.Links > 1 || HasComponent(rel, ".husky") {
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

// holderOf returns the node that a mount over a path depends on: a directory's
// own node, else that of the directory above. A command cannot replace a mount
// point, but it can replace its parent. ok is false for links, which are not
// mounted over.
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
