package writeguard

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// settingsSource is a file with git's settings, and where they apply. All paths
// are absolute.
type settingsSource struct {
	file string
	repo string   // its repository, "" for an included file, which applies in all
	tops []string // the work trees in which the settings apply
	runs []string // settings that run a program
}

// outerRepository is a repository outside a root that git uses in the root, or
// in a directory above it. All paths are absolute.
type outerRepository struct {
	dir, common string // of a linked work tree, common is the repository that it shares
	tops        []string
}

// settingsCache reads settings of git, and directories outside of roots. It
// reads a file or directory again after it has changed. It is safe for
// concurrent use.
type settingsCache struct {
	mu    sync.Mutex
	files map[string]cachedRuns
	dirs  map[string]cachedDir
}

// cachedDir holds the links and repositories that readDir found in a directory. They
// are valid as long as the directory's status equals info, unless it was read within
// supervise.SettledAfter of its last change.
type cachedDir struct {
	info  os.FileInfo // status before the reading
	at    time.Time   // time of the reading
	repos []string    // subdirectories that git treats as a repository, without .git
	links []string    // symbolic links
}

// settingsThatRun returns the settings (KEY=VALUE) of file that make git run a
// program. It returns nil if the file cannot be read.
func (c *settingsCache) settingsThatRun(file string) []string {
	info, err := os.Stat(file)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.files[file]; ok && isSameVersion(info, known.info) {
		return known.runs
	}
	config, _ := readRegularFile(resolveExisting(file), maxIncludedBytes)
	runs, _ := gitfile.DangerousSettings(config)
	if c.files == nil {
		c.files = map[string]cachedRuns{}
	}
	c.files[file] = cachedRuns{info, runs}
	return runs
}

// maxOuterEntries bounds the entries of a directory outside the roots that are
// searched. Those of a larger directory are not.
const maxOuterEntries = 1000

// readDir returns the links and repositories in a directory. Both are empty if the
// directory cannot be read or has more than maxOuterEntries entries.
func (c *settingsCache) readDir(path string) cachedDir {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return cachedDir{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.dirs[path]; ok && isSameVersion(info, known.info) && known.at.Sub(info.ModTime()) >= supervise.SettledAfter {
		return known
	}
	read := cachedDir{info: info, at: time.Now()}
	if d, err := os.Open(path); err == nil {
		entries, _ := d.ReadDir(maxOuterEntries + 1)
		d.Close()
		if len(entries) > maxOuterEntries {
			entries = nil
		}
		for _, entry := range entries {
			at := filepath.Join(path, entry.Name())
			if entry.Type()&fs.ModeSymlink != 0 {
				read.links = append(read.links, at)
			} else if entry.IsDir() && !isDotGitName(entry.Name()) && looksLikeGitDir(at) {
				read.repos = append(read.repos, at)
			}
		}
	}
	if c.dirs == nil {
		c.dirs = map[string]cachedDir{}
	}
	c.dirs[path] = read
	return read
}

// looksLikeGitDir reports whether dir itself is a git directory, by the entries
// in it: HEAD, and objects and refs or a commondir. A work tree with a .git is
// not.
func looksLikeGitDir(dir string) bool {
	has := func(name string) bool { return pathExists(dir + string(filepath.Separator) + name) }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// outerRepositories lists the repositories of the directories above a root, and
// the repositories in these directories whose work tree may be given on git's
// command line, as for dotfiles.
func (c *settingsCache) outerRepositories(root string) (repos []outerRepository) {
	for dir := filepath.Dir(root); ; dir = filepath.Dir(dir) {
		if repo, ok := repositoryOfPointer(filepath.Join(dir, ".git")); ok {
			repos = append(repos, newOuterRepository(repo, dir))
		}
		if looksLikeGitDir(dir) {
			top := dir
			if isDotGitName(filepath.Base(dir)) {
				top = filepath.Dir(dir)
			}
			repos = append(repos, newOuterRepository(dir, top))
		}
		if dir == filepath.Dir(dir) {
			return repos
		}
		for _, repo := range c.readDir(dir).repos {
			if !isAtOrBelowPath(repo, root) {
				repos = append(repos, newOuterRepository(repo, dir))
			}
		}
	}
}

// isAtOrBelowPath reports whether path is dir or below it. Both are absolute.
func isAtOrBelowPath(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// repositoryOfPointer returns the directory of the repository that a .git is or
// names. ok is false if there is none.
func repositoryOfPointer(dotGit string) (repo string, ok bool) {
	info, err := os.Lstat(dotGit)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return dotGit, true
	}
	target, _ := readGitPointer(dotGit)
	return resolveLinks(target)
}

// resolveLinks resolves the symbolic links of path. ok is false if path is empty, does
// not exist or cannot be resolved.
func resolveLinks(path string) (resolved string, ok bool) {
	if path == "" {
		return "", false
	}
	resolved, err := filepath.EvalSymlinks(path)
	return resolved, err == nil
}

// newOuterRepository returns the repository at dir, whose common directory it
// reads, with the work tree top.
func newOuterRepository(dir, top string) outerRepository {
	r := outerRepository{dir: dir, common: dir, tops: []string{top}}
	if target, _ := readGitPointer(filepath.Join(dir, "commondir")); target != "" {
		if common, ok := resolveLinks(target); ok {
			r.common = common
		}
	}
	return r
}

// outerRepositoriesOf lists the repositories outside a root that apply in it: the results
// of outerRepositories, and the repositories that a .git in the root names.
func (b *baseline) outerRepositoriesOf(root string, c *settingsCache) []outerRepository {
	repos := c.outerRepositories(root)
	for name, it := range b.Items {
		if it.Spot != gitPointerKind || !isDotGitName(filepath.Base(name)) {
			continue
		}
		target := string(it.Content)
		if it.Mode&fs.ModeSymlink == 0 {
			target, _ = gitfile.PointerTarget(".git", it.Content)
		} else if inner, err := os.Stat(filepath.Join(root, name)); err == nil && inner.Mode().IsRegular() {
			target, _ = readGitPointer(filepath.Join(root, name))
		}
		if target == "" {
			continue
		}
		top := filepath.Join(root, filepath.Dir(name))
		if repo, ok := resolveLinks(joinIfRelative(root, filepath.Dir(name), filepath.FromSlash(target))); ok && !isAtOrBelowPath(root, repo) {
			repos = append(repos, newOuterRepository(repo, top))
		}
	}
	return repos
}

// settingsSources lists the settings of the root's own repositories and of outer, which
// outerRepositoriesOf returned. Settings in the root have the state of the baseline.
func (b *baseline) settingsSources(root string, outer []outerRepository, c *settingsCache) (all []settingsSource) {
	pointers := b.workTreePointers(root)
	for name, it := range b.Items {
		if it.Spot != gitSettingsKind || len(it.Runs) == 0 {
			continue
		}
		s := settingsSource{file: filepath.Join(root, name), runs: it.Runs}
		if !slices.Contains(b.Included, name) {
			s.repo, s.tops = filepath.Join(root, it.Repo), append(workTreesInSettings(s), filepath.Join(root, workTreeOf(it.Repo)))
			for top, repo := range pointers {
				if repo == it.Repo || isAtOrBelow(filepath.Join(it.Repo, "worktrees"), repo) {
					s.tops = append(s.tops, filepath.Join(root, top))
				}
			}
		}
		all = append(all, s)
	}
	for _, repo := range outer {
		for _, file := range []string{filepath.Join(repo.common, "config"), filepath.Join(repo.dir, "config.worktree")} {
			s := settingsSource{file: file, repo: repo.common}
			if rel, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(rel) {
				s.runs = b.Items[rel].Runs
			} else {
				s.runs = c.settingsThatRun(file)
			}
			if len(s.runs) > 0 {
				s.tops = append(workTreesInSettings(s), repo.tops...)
				all = append(all, s)
			}
		}
	}
	return all
}

// workTreesInSettings returns the absolute paths of the work trees that the
// settings of s name (core.worktree).
func workTreesInSettings(s settingsSource) (tops []string) {
	for _, setting := range s.runs {
		if tree, ok := strings.CutPrefix(setting, "core.worktree="); ok && tree != "" {
			if tree = filepath.FromSlash(tree); !filepath.IsAbs(tree) {
				tree = filepath.Join(filepath.Dir(s.file), tree)
			}
			tops = append(tops, filepath.Clean(tree))
		}
	}
	return tops
}
