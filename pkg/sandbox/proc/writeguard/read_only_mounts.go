package writeguard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// ReadOnlyPaths lists the absolute paths in the root to mount read-only for
// commands at L2: files that make git and other programs run something. Git's
// settings and the files that lead to a repository are not listed, since git
// itself replaces and removes them. The paths need not exist.
func (w *RootGuard) ReadOnlyPaths() (paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.readOnlyPaths()
}

// readOnlyPaths is ReadOnlyPaths for a caller that holds w.mu.
func (w *RootGuard) readOnlyPaths() (paths []string) {
	for repo := range w.baseline.Repos {
		for _, name := range []string{"hooks", "info/attributes"} {
			paths = append(paths, filepath.Join(w.root, repo, name))
		}
	}
	for _, dir := range w.baseline.HookDirs {
		paths = append(paths, filepath.Join(w.root, dir))
	}
	for name, it := range w.baseline.Items {
		switch {
		case slices.Contains(w.baseline.Programs, name): // git checkout and make replace them
		case it.Spot == projectSettingsKind && !slices.Contains(w.baseline.HookDirs, it.Repo):
			rel, err := filepath.Rel(it.Repo, name)
			if err != nil {
				continue
			}
			paths = append(paths, filepath.Join(w.root, it.Repo, settingsTop(rel))) // commands of hg and jj write to the directory
		case it.Spot == gitSettingsKind && it.Size > maxStoredBytes:
			paths = append(paths, filepath.Join(w.root, name))
		}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		rel, err := filepath.Rel(w.root, path)
		return err != nil || w.baseline.isMadeByCommands(rel) || HasComponent(rel, ".husky") || supervise.IsBeneath(path, w.root)
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}

// CanBeReadOnly reports whether the absolute path can be mounted read-only for a command.
// A path outside the root can. The files that lead git to a repository cannot: git
// worktree remove, git submodule deinit and the renaming of a work tree fail if such a
// file is a mount point. Nor can the files of repositories that commands created. These
// files are checked after the command instead.
func (w *RootGuard) CanBeReadOnly(path string) bool {
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
	return !w.baseline.isMadeByCommands(rel)
}

// wasReadOnlyAtL2 reports whether the kernel protected a file of the baseline
// from all commands at L2, so that its change is the user's.
func (w *RootGuard) wasReadOnlyAtL2(path string) bool {
	rel, err := filepath.Rel(w.root, path)
	if err != nil {
		return false
	}
	was, had := w.baseline.Items[rel]
	if !had || was.Spot == gitSettingsKind || was.Links > 1 || HasComponent(rel, ".husky") {
		return false
	}
	for at := path; supervise.IsBeneath(w.root, at) && at != w.root; at = filepath.Dir(at) {
		if isWorktreesOfClaude(at) {
			return false
		}
		if node, ok := w.baseline.Kept[at]; ok {
			now, ok := mountNode(at)
			return ok && now == node
		}
	}
	return false
}

// mountNode returns the device and inode of the directory that a mount over a
// path depends on: the path itself if it is a directory, else the directory
// above. A command cannot replace a mount point, but it can replace its parent.
// ok is false for links, which are not mounted over.
func mountNode(path string) (node [2]uint64, ok bool) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		return node, false
	}
	if err != nil || !info.IsDir() {
		if info, err = os.Lstat(filepath.Dir(path)); err != nil {
			return node, false
		}
	}
	return deviceAndInode(info), true
}
