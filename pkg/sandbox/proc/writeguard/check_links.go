package writeguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// isPointerAllowed reports whether a .git or commondir names a watched
// repository, a gitdir the .git of a work tree, or either a path that does not
// exist or, except for a commondir, is in another watched root. Files that appear
// at that path later are checked as new.
func (rc *rootCheck) isPointerAllowed(name, path, repo string) bool {
	if filepath.Base(name) == "commondir" && rc.baseline.Repos[repo] {
		return false // git only makes it together with the repository
	}
	if isDotGit(filepath.Base(name)) && rc.isInGitDir(repo) {
		return false // its work tree would be a directory of git
	}
	target, ok := readGitPointer(path)
	if target == "" || !ok {
		return ok // git ignores it
	}
	resolved, err := filepath.EvalSymlinks(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	} else if err != nil {
		resolved = filepath.Clean(target)
	}
	if rel, err := filepath.Rel(rc.root, resolved); err == nil && filepath.IsLocal(rel) {
		if filepath.Base(name) == "gitdir" {
			return isDotGit(filepath.Base(rel)) && (rc.found.files[rel].kind == gitPointerKind || !pathExists(resolved))
		}
		return rc.found.repos[rel] || !pathExists(resolved)
	}
	// Only its own root knows that a commondir leads to a directory without HEAD.
	return filepath.Base(name) != "commondir" && rc.inOtherRoot(resolved)
}

// isInGitDir reports whether a directory belongs to git: it is a repository or
// a directory that git uses in one.
func (rc *rootCheck) isInGitDir(dir string) bool {
	for repo := range rc.found.repos {
		if rel, err := filepath.Rel(repo, dir); err == nil && filepath.IsLocal(rel) && isGitDir(repo, rel) {
			return true
		}
	}
	return false
}

// isLinkAllowed reports whether a link in a repository leads to the same name
// in another repository of the root, as in a work tree that shares the other's
// refs, or is a HEAD that leads to a branch.
func (rc *rootCheck) isLinkAllowed(name, path, repo string) bool {
	rel, err := filepath.Rel(repo, name)
	if err != nil {
		return false
	}
	resolved, err := filepath.Rel(rc.root, resolveExisting(path))
	if err != nil || !filepath.IsLocal(resolved) || resolved == name {
		return false
	}
	if rel == "HEAD" && isAtOrBelow(filepath.Join(repo, "refs", "heads"), resolved) {
		return true
	}
	for other := range rc.found.repos {
		if same, err := filepath.Rel(other, resolved); err == nil && same == rel && other != repo {
			return true
		}
	}
	return false
}

// targetsOfReplacingLinks lists the directories in the root to which links lead
// that took the place of a directory of the baseline.
func (rc *rootCheck) targetsOfReplacingLinks() (dirs []string) {
	for _, link := range rc.found.links {
		if !rc.baseline.Seen.has(dirKey(link)) {
			continue
		}
		if dir, err := filepath.Rel(rc.root, resolveExisting(filepath.Join(rc.root, link))); err == nil && filepath.IsLocal(dir) && dir != "." {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// pathExists reports whether there is a file at path. It follows no link.
func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
