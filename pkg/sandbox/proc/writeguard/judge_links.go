package writeguard

import (
	"os"
	"path/filepath"
)

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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
