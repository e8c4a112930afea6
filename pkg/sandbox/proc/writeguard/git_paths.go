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

// gitPlaces are the places that git's settings name, as names in the root. They
// need not exist.
type gitPlaces struct {
	hookDirs []string // directories that core.hooksPath names, or to which links in place of project settings lead
	included []string // files with settings that the user's or the repositories' include
	programs []string // programs that other settings name, links on the way to all of these, files to which such links lead

	root string
	tops map[string]bool
	user UserGit
}

// gitPlaces finds the places that the settings of the user and of the root's
// repositories name. Its lists are sorted.
func (b *baseline) gitPlaces(root string, user UserGit) *gitPlaces {
	p := &gitPlaces{root: root, tops: b.Tops, user: user}
	for _, path := range user.Files {
		p.included = addName(p.included, root, path)
	}
	for _, path := range user.HooksPaths {
		p.hooks(path, b.Tops, "")
	}
	for name, it := range b.Items {
		if it.Spot == projectKind && it.Mode&fs.ModeSymlink != 0 && !slices.Contains(b.Programs, name) {
			p.project(filepath.Join(root, name))
		}
		if it.Spot != settingsKind {
			continue
		}
		if slices.Contains(b.Included, name) {
			p.add(filepath.Join(root, name), it.Runs, b.Tops, "", 0)
		} else {
			p.add(filepath.Join(root, name), it.Runs, map[string]bool{workTree(it.Repo): true}, it.Repo, 0)
		}
	}
	p.hookDirs = slices.DeleteFunc(p.hookDirs, func(dir string) bool { return dir == "." || isHooks(dir) })
	for _, list := range []*[]string{&p.hookDirs, &p.included, &p.programs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return p
}

// add adds the places that a settings file names which holds for the work
// trees of tops. repo is its repository, "" for an included file.
func (p *gitPlaces) add(file string, runs []string, tops map[string]bool, repo string, depth int) {
	for _, program := range gitfile.Programs(runs) {
		for _, path := range p.user.Expand(program) {
			for top := range tops {
				path := absolute(p.root, top, path)
				p.programs = addName(addLinks(p.programs, p.root, path), p.root, path)
			}
		}
	}
	for _, setting := range runs {
		key, value, _ := strings.Cut(setting, "=")
		switch {
		case value == "":
		case key == "core.hookspath":
			for _, path := range p.user.Expand(value) {
				p.hooks(filepath.FromSlash(path), tops, repo)
			}
		case key == "core.worktree": // another link in its place leads elsewhere
			path := filepath.FromSlash(value)
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(file), path)
			}
			p.programs = addName(addLinks(p.programs, p.root, path), p.root, path)
		case strings.HasPrefix(key, "include") && strings.HasSuffix(key, ".path"):
			for _, path := range p.user.Expand(value) {
				if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
					path = filepath.Join(filepath.Dir(file), path)
				}
				p.include(path, depth)
			}
		}
	}
}

// hooks adds a directory of hooks, except one in the repository itself, whose
// own hooks are watched.
func (p *gitPlaces) hooks(path string, tops map[string]bool, repo string) {
	for top := range tops {
		path := absolute(p.root, top, path)
		p.programs = addLinks(p.programs, p.root, path)
		for _, dir := range addName(nil, p.root, path) {
			if repo == "" || !within(dir, repo) {
				p.hookDirs = append(p.hookDirs, dir)
			}
		}
	}
}

// project adds the target of a link that is a project's settings.
func (p *gitPlaces) project(link string) {
	real := realPath(link)
	info, err := os.Lstat(real)
	switch {
	case projectfile.IsParent(filepath.Base(link)):
	case err == nil && info.IsDir():
		p.hookDirs = addName(p.hookDirs, p.root, real)
	default:
		_, target := firstLink(link) // the link itself is watched already
		p.programs = addName(addLinks(p.programs, p.root, target), p.root, target)
	}
}

// include adds an included file, and the places that it names if it is outside
// the root. Those of a file in the root are added once it is in the baseline.
func (p *gitPlaces) include(path string, depth int) {
	p.programs = addLinks(p.programs, p.root, path)
	if names := addName(nil, p.root, path); len(names) > 0 {
		p.included = append(p.included, names...)
		return
	}
	if depth == mostIncludes {
		return
	}
	if config, err := readRegular(realPath(path), mostOutside); err == nil {
		runs, _ := gitfile.Runs(config)
		p.add(path, runs, p.tops, "", depth+1)
	}
}

// mostOutside bounds a settings file outside the root in bytes.
const mostOutside = 1 << 20

// absolute returns path, joined with root and dir if it is relative.
func absolute(root, dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, dir, path)
}

// workTree returns the top directory of a repository's work tree.
func workTree(repo string) string {
	if isDotGit(filepath.Base(repo)) {
		return filepath.Dir(repo)
	}
	return repo
}

// addName resolves the links of path, and appends its name in the root if it
// is in the root.
func addName(names []string, root, path string) []string {
	rel, err := filepath.Rel(root, realPath(path))
	if err != nil || !filepath.IsLocal(rel) {
		return names
	}
	return append(names, rel)
}
