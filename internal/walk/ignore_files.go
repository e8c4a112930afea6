package walk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxIgnoreFile bounds an ignore file in bytes; larger files are not read.
const maxIgnoreFile = 1 << 20

// tree is the state that the nodes of one walk share. It is safe for concurrent
// use.
type tree struct {
	opts       Options
	topRoot    string    // the outermost root around the start
	cacheUsed  bool      // opts.Cache was used by an earlier walk
	bufferPool sync.Pool // of *buffers

	mu      sync.Mutex
	faults  []Fault
	globals map[string]*ruleSet // global excludes by file, once read
	user    *gitConfig          // the user's git configuration, once read
}

// addFault records an ignore file that could not be read, unless maxListed are
// recorded.
func (t *tree) addFault(path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.faults) < maxListed {
		t.faults = append(t.faults, Fault{Path: path, Err: err})
	}
}

// listFaults returns a copy of the recorded faults.
func (t *tree) listFaults() []Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.faults)
}

// ruleDir gives access to the ignore files of a directory.
type ruleDir interface {
	hasRuleFile(name string) bool     // for the names in ruleFileNames
	exists(name string) bool          // for any name
	read(name string) ([]byte, error) // fs.ErrNotExist if the file does not exist
	shown(name string) string         // for messages
	abs() string
}

// walkedDir is an open directory of the walk.
type walkedDir struct {
	dir      *sandbox.Dir
	path     string                 // relative to the start
	mayExist func(name string) bool // may return true for missing names
}

// hasRuleFile implements ruleDir. It looks only for a file that mayExist.
func (s walkedDir) hasRuleFile(name string) bool { return s.mayExist(name) && s.exists(name) }

// exists implements ruleDir. It returns false if the entry cannot be examined.
func (s walkedDir) exists(name string) bool {
	_, err := s.dir.Lstat(name)
	return err == nil
}

// read implements ruleDir. It returns TOO_LARGE for more than maxIgnoreFile bytes.
func (s walkedDir) read(name string) ([]byte, error) {
	if !s.mayExist(name) {
		return nil, fs.ErrNotExist
	}
	text, _, err := s.dir.ReadFile(name, nil, maxIgnoreFile)
	return text, err
}

// shown implements ruleDir: the path is relative to the start.
func (s walkedDir) shown(name string) string {
	if s.path == "" {
		return name
	}
	return s.path + "/" + name
}

// abs implements ruleDir.
func (s walkedDir) abs() string { return s.dir.Path() }

// outerDir is the absolute path of a directory above the start, or of one in a
// git directory.
type outerDir string

// hasRuleFile implements ruleDir.
func (s outerDir) hasRuleFile(name string) bool { return s.exists(name) }

// exists implements ruleDir. It returns false if the entry cannot be examined.
func (s outerDir) exists(name string) bool {
	_, err := os.Lstat(s.shown(name))
	return err == nil
}

// read implements ruleDir.
func (s outerDir) read(name string) ([]byte, error) { return readRegularFile(s.shown(name)) }

// shown implements ruleDir: the path is absolute.
func (s outerDir) shown(name string) string { return filepath.Join(string(s), name) }

// abs implements ruleDir.
func (s outerDir) abs() string { return string(s) }

// readRegularFile reads a regular file of at most maxIgnoreFile bytes. It does
// not follow a link at the end of path and does not block. It returns
// SPECIAL_FILE for another file, and TOO_LARGE.
func readRegularFile(path string) ([]byte, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, toolerr.New(toolerr.SpecialFile, "%s is not a regular file", pathname.Escape(path))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(before, after) {
		return nil, toolerr.New(toolerr.SpecialFile, "%s was replaced while it was opened", pathname.Escape(path))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile+1))
	if len(text) > maxIgnoreFile {
		return nil, toolerr.New(toolerr.TooLarge, "%s is larger than %d bytes", pathname.Escape(path), maxIgnoreFile)
	}
	return text, err
}

// loadRuleFile reads one ignore file. It returns nil if the file is missing or has no
// rule. If the file cannot be read it returns nil and records a fault. fold means that
// names are matched regardless of case.
func (t *tree) loadRuleFile(s ruleDir, name string, d dialect, fold bool) *ruleSet {
	text, err := s.read(name)
	switch {
	case err == nil:
		set, err := parseRules(text, d, fold)
		if err != nil {
			t.addFault(s.shown(name), err)
		}
		return set
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EISDIR), toolerr.Is(err, toolerr.IsADirectory):
	default:
		t.addFault(s.shown(name), err)
	}
	return nil
}

// dirScope returns the rules for a directory of the walk, given outer, those for its
// parent. present returns false for names of ignore files that the directory does not
// have.
func (t *tree) dirScope(outer *scope, dir *sandbox.Dir, path string, present func(string) bool) *scope {
	return t.extendScope(outer, walkedDir{dir, path, present}, layer{base: path})
}

// scopeAbove returns the rules set by the directories above abs, an absolute
// path.
func (t *tree) scopeAbove(abs string) *scope {
	var dirs []string
	for dir := filepath.Dir(abs); dir != abs; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	s := emptyScope
	for _, dir := range slices.Backward(dirs) {
		rel, err := filepath.Rel(dir, abs)
		if err != nil {
			continue
		}
		s = t.extendScope(s, outerDir(dir), layer{above: filepath.ToSlash(rel)})
	}
	return s
}

// extendScope returns outer with the rules of a directory's ignore files added.
// place is the directory's position. It returns outer itself if there are none.
func (t *tree) extendScope(outer *scope, src ruleDir, place layer) *scope {
	s := outer
	change := func() {
		if s == outer {
			s = outer.clone()
		}
	}
	add := func(k fileKind, set *ruleSet) {
		if set != nil {
			change()
			l := place
			l.set = set
			s.addLayer(k, l)
		}
	}
	if src.hasRuleFile(".git") || src.hasRuleFile(".jj") {
		change()
		s.inRepository, s.layers[gitignore], s.layers[exclude], s.layers[global] = true, nil, nil, nil
		repo := t.openRepository(src)
		s.fold = repo.fold
		add(exclude, repo.exclude)
		add(global, repo.global)
	} else if !s.inRepository && t.isProjectTop(src) {
		change()
		s.inRepository = true
	}
	add(rgignore, t.loadRuleFile(src, ".rgignore", rgDialect, false))
	add(dotIgnore, t.loadRuleFile(src, ".ignore", rgDialect, false))
	if s.inRepository {
		add(gitignore, t.loadRuleFile(src, ".gitignore", gitDialect, s.fold))
	}
	if s != outer {
		s.finish()
	}
	return s
}

// isGitEntry reports whether an entry is .git: git's directory or, in a linked
// work tree, the file that names it.
func isGitEntry(name string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return len(name) == 4 && strings.EqualFold(name, ".git")
	}
	return name == ".git"
}
