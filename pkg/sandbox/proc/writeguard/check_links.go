package writeguard

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// isPointerAllowed reports whether a .git or commondir names a watched
// repository, a gitdir the .git of a work tree, or either a path that does not
// exist or, except for a commondir, is in another watched root. Files that appear
// at that path later are checked as new.
func (rc *rootCheck) isPointerAllowed(name, path, repo string) bool {
	if filepath.Base(name) == "commondir" && rc.baseline.Repos[repo] {
		return false // git only makes it together with the repository
	}
	if isDotGitName(filepath.Base(name)) && rc.isInGitDir(repo) {
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
			return isDotGitName(filepath.Base(rel)) && (rc.found.files[rel].kind == gitPointerKind || !pathExists(resolved))
		}
		return rc.found.repos[rel] || !pathExists(resolved)
	}
	// Only its own root knows that a commondir leads to a directory without HEAD.
	return filepath.Base(name) != "commondir" && (rc.inOtherRoot(resolved) || rc.isUsersWorktree(path, resolved))
}

// maxPointerGap bounds the time between the two files that git worktree add
// writes.
const maxPointerGap = 2 * time.Second

// isUsersWorktree reports whether a gitdir leads to the .git of a work tree
// outside the roots, or a .git to the repository of one, and that file leads
// back: the user's git worktree add made both, since commands cannot write there.
// The .git must be as old as the repository, which the user may have made for a
// work tree that is gone.
func (rc *rootCheck) isUsersWorktree(path, target string) bool {
	other := target
	isDir := filepath.Base(path) == "gitdir"
	if !isDir {
		other = filepath.Join(target, "gitdir")
	}
	theirs, err := os.Lstat(other)
	if err != nil || !theirs.Mode().IsRegular() {
		return false
	}
	pointed, ok := readGitPointer(other)
	if back, err := filepath.EvalSymlinks(pointed); !ok || err != nil || back != path && (!isDir || back != filepath.Dir(path)) {
		return false
	}
	ours, err := os.Lstat(path)
	return err == nil && (isDir || fileinfo.ChangeTime(ours).Sub(fileinfo.ChangeTime(theirs)).Abs() <= maxPointerGap)
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

// isGitsTrialLink reports whether a link is like the one by which git init tries
// whether the file system has links: it has a random name at the top of the
// repository, leads to "testing", and git removes it at once
// (create_default_files in git's setup.c). Git reads no file of such a name.
func isGitsTrialLink(name, path, repo string) bool {
	base := filepath.Base(name)
	target, err := os.Readlink(path)
	return err == nil && target == "testing" && filepath.Dir(name) == repo && len(base) == len("tXXXXXX") && base[0] == 't' &&
		!strings.ContainsFunc(base, func(r rune) bool { return (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') })
}

// maxAliases bounds the names of one directory that are looked at: a link to a
// directory above itself gives any number of them.
const maxAliases = 200

// dirAlias is a name in the root that leads to a directory: its own, or one
// through links.
type dirAlias struct {
	dir     string
	newLink string // a link on the way that is new; "" if there is none
}

// aliases returns the names in the root that lead to the directory dir, its own
// first, at most maxAliases.
func (rc *rootCheck) aliases(dir string) []dirAlias {
	all := []dirAlias{{dir: dir}}
	for i := 0; i < len(all); i++ {
		for _, link := range rc.resolvedLinks() {
			rest, ok := nameBelow(link.target, all[i].dir)
			name := filepath.Join(link.name, rest)
			if !ok || len(all) >= maxAliases || slices.ContainsFunc(all, func(a dirAlias) bool { return a.dir == name }) {
				continue
			}
			all = append(all, dirAlias{name, cmp.Or(all[i].newLink, link.newLink)})
		}
	}
	return all
}

// isKnownDir reports whether a directory was a directory or a link before the command,
// under its own name or a name that links give it.
func (rc *rootCheck) isKnownDir(dir string) bool {
	return slices.ContainsFunc(rc.aliases(dir), func(a dirAlias) bool { return rc.baseline.Seen.has(dirKey(a.dir)) })
}

// resolvedLink is a link in the root and the file in the root that it leads to.
type resolvedLink struct {
	name, target string
	newLink      string // the first new link on the way, which may be this one; "" if there is none
}

// resolvedLinks returns the links outside repositories that lead to a place in
// the root, which need not exist.
func (rc *rootCheck) resolvedLinks() []resolvedLink {
	if rc.linkTargets == nil {
		rc.linkTargets = []resolvedLink{}
		isNew := map[string]bool{}
		for _, link := range rc.found.links {
			isNew[link.name] = !rc.baseline.Seen.has(link.exactKey)
		}
		for _, link := range rc.found.links {
			path := filepath.Join(rc.root, link.name)
			target, err := filepath.Rel(rc.root, resolveExisting(path))
			if err != nil || !filepath.IsLocal(target) {
				continue
			}
			resolved := resolvedLink{name: link.name, target: target}
			for _, name := range appendLinks(nil, rc.root, path) {
				if isNew[name] {
					resolved.newLink = name
					break
				}
			}
			rc.linkTargets = append(rc.linkTargets, resolved)
		}
	}
	return rc.linkTargets
}

// checkLinks removes new links in place of a directory or link of the user that
// lead where project settings are not checked: to a directory of package
// managers, or to another root.
func (rc *rootCheck) checkLinks() {
	for _, link := range rc.found.links {
		path := filepath.Join(rc.root, link.name)
		if rc.baseline.Seen.has(link.exactKey) || !linksToDirOrNothing(path) || !rc.leadsToUnchecked(path) || rc.skip(path) || !rc.isKnownDir(link.name) {
			continue
		}
		rc.revert(link.name, path, false, &fileState{})
	}
	rc.checkLinksToSettings()
}

// checkLinksToSettings removes new links by which a directory of the user gets other
// project settings. An earlier command may have made these with their directory, where
// they may stay.
func (rc *rootCheck) checkLinksToSettings() {
	if !slices.ContainsFunc(rc.found.links, func(l foundLink) bool { return !rc.baseline.Seen.has(l.exactKey) }) {
		return // most commands make no link, and resolving all of them takes time
	}
	removed := map[string]bool{}
	for name, at := range rc.found.files {
		if at.kind != projectSettingsKind && at.kind != judgedSettingsKind {
			continue
		}
		inDir, ok := nameBelow(at.repo, name)
		if !ok {
			continue
		}
		for _, other := range rc.aliases(at.repo)[1:] {
			path := filepath.Join(rc.root, other.newLink)
			if other.newLink == "" || removed[other.newLink] || !rc.baseline.Seen.has(dirKey(other.dir)) || rc.skip(path) || rc.hadSameSettings(filepath.Join(other.dir, inDir), name, at) {
				continue
			}
			removed[other.newLink] = true
			rc.revert(other.newLink, path, false, &fileState{})
		}
	}
}

// hadSameSettings reports whether the file known had, in the baseline, the
// content that the file name has now. It returns true if name is gone.
func (rc *rootCheck) hadSameSettings(known, name string, at watchedFile) bool {
	was, inBaseline := rc.baseline.Items[known]
	path := filepath.Join(rc.root, name)
	info, err := os.Lstat(path)
	if err != nil {
		return true // nothing is there any more
	}
	now := readState(path, at, info)
	return inBaseline && was.sameContentTypeAndExec(&now)
}

// leadsToUnchecked reports whether a link leads to a directory of package
// managers, or to another root.
func (rc *rootCheck) leadsToUnchecked(link string) bool {
	resolved := resolveExisting(link)
	target, err := filepath.Rel(rc.root, resolved)
	if err != nil || !filepath.IsLocal(target) {
		return rc.inOtherRoot(resolved)
	}
	return slices.ContainsFunc(packageManagerDirs, func(name string) bool {
		return slices.Contains(strings.Split(target, string(filepath.Separator)), name)
	})
}

// pathExists reports whether there is a file, directory or link at path. It
// follows no link.
func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
