package writeguard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/internal/projectfile"
)

// reuseListName is the file of a repository with the paths to which git rerere
// writes recorded resolutions of conflicts.
const reuseListName = "MERGE_RR"

// checkReuseList removes a MERGE_RR by which git would write to a place where a
// command must not: out of the work tree, into a repository, through a link, or
// to a watched file. It also checks an unchanged file, because a command can
// place a link on the way. Without the file, git only records and reuses no
// resolution of the merge that is not finished.
func (rc *rootCheck) checkReuseList(name, path, repo string) {
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	content, err := readRegularFile(path, maxStoredBytes)
	paths, ok := gitfile.RererePaths(content)
	if err == nil && ok && !slices.ContainsFunc(paths, func(path string) bool { return rc.isReuseForbidden(repo, path) }) {
		return
	}
	if info.Mode().IsRegular() {
		rc.copies.store(path, content)
	}
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.removeItem(name) }))
}

// isReuseForbidden reports whether git must not write to a path that a
// MERGE_RR of repo names.
func (rc *rootCheck) isReuseForbidden(repo, path string) bool {
	if gitfile.EscapesWorkTree(path) {
		return true
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if projectfile.IsSettingsPath(part, parts[i+1:]) {
			return true
		}
	}
	return slices.ContainsFunc(rc.workTreesOf(repo), func(top string) bool { return rc.isGuardedOrLinked(top, filepath.FromSlash(path)) })
}

// workTreesOf returns the tops of the work trees in the root that repo may
// have, as names in the root. For a repository that is not called .git these
// are all of the root.
func (rc *rootCheck) workTreesOf(repo string) (tops []string) {
	if isDotGitName(filepath.Base(repo)) {
		tops = append(tops, filepath.Dir(repo))
	} else {
		for top := range rc.found.tops {
			tops = append(tops, top)
		}
	}
	for _, setting := range rc.baseline.Items[filepath.Join(repo, "config")].Runs {
		if tree, ok := strings.CutPrefix(setting, "core.worktree="); ok {
			tops = appendIfInRoot(tops, rc.root, joinIfRelative(rc.root, repo, filepath.FromSlash(tree)))
		}
	}
	return tops
}

// isGuardedOrLinked reports whether a path below top, a directory in the root,
// leads through a link, into a repository, or to a watched file.
func (rc *rootCheck) isGuardedOrLinked(top, path string) bool {
	name := filepath.Join(top, path)
	for at := name; at != top && at != "."; at = filepath.Dir(at) {
		if info, err := rc.handle.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
		if rc.found.repos[at] {
			return true
		}
	}
	_, watched := rc.found.files[name]
	return watched || rc.baseline.isNamedByGit(name)
}

// isNamedByGit reports whether settings of git name a file as a program or as
// further settings, or the directory that it is in as hooks.
func (b *baseline) isNamedByGit(name string) bool {
	return slices.Contains(b.Programs, name) || slices.Contains(b.Included, name) || slices.ContainsFunc(b.HookDirs, func(dir string) bool { return isAtOrBelow(dir, name) })
}
