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

// tree is the state shared by the nodes of one walk.
type tree struct {
	opts       Options
	top        string    // the outermost root around the start
	remember   bool      // opts.Cache was used by an earlier walk
	bufferPool sync.Pool // of *buffers

	mu      sync.Mutex
	faults  []Fault
	globals map[string]*ruleSet // global excludes by file, once read
	user    *gitConfig          // the user's git configuration, once read
}

// addFault records an ignore file that could not be read.
func (t *tree) addFault(path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.faults) < maxListed {
		t.faults = append(t.faults, Fault{Path: path, Err: err})
	}
}

func (t *tree) listFaults() []Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.faults)
}

// source gives the loader of ignore files access to a directory.
type source interface {
	has(name string) bool             // for the names in telling
	exists(name string) bool          // for any name
	read(name string) ([]byte, error) // fs.ErrNotExist if the file does not exist
	shown(name string) string         // for messages
	abs() string
}

// inside is a directory of the walk.
type inside struct {
	dir     *sandbox.Dir
	path    string
	present func(name string) bool // may return true for missing names
}

func (s inside) has(name string) bool { return s.present(name) && s.exists(name) }

func (s inside) exists(name string) bool {
	_, err := s.dir.Lstat(name)
	return err == nil
}

func (s inside) read(name string) ([]byte, error) {
	if !s.present(name) {
		return nil, fs.ErrNotExist
	}
	text, _, err := s.dir.ReadFile(name, nil, maxIgnoreFile)
	return text, err
}

func (s inside) shown(name string) string {
	if s.path == "" {
		return name
	}
	return s.path + "/" + name
}

func (s inside) abs() string { return s.dir.Path() }

// outside is a directory above the start.
type outside string

func (s outside) has(name string) bool { return s.exists(name) }

func (s outside) exists(name string) bool {
	_, err := os.Lstat(s.shown(name))
	return err == nil
}

func (s outside) read(name string) ([]byte, error) { return readSmall(s.shown(name)) }
func (s outside) shown(name string) string         { return filepath.Join(string(s), name) }
func (s outside) abs() string                      { return string(s) }

// readSmall reads a regular file of at most maxIgnoreFile bytes. It does not
// follow links and does not block.
func readSmall(path string) ([]byte, error) {
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

// load reads one ignore file. It returns nil if the file is missing or has no
// rule, or, after recording a fault, if it cannot be read.
func (t *tree) load(s source, name string, d dialect, fold bool) *ruleSet {
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

// enter returns the rules of a directory of the walk, given those of its
// parent.
func (t *tree) enter(outer *scope, dir *sandbox.Dir, path string, present func(string) bool) *scope {
	return t.extend(outer, inside{dir, path, present}, layer{base: path})
}

// above returns the rules set by the directories above abs.
func (t *tree) above(abs string) *scope {
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
		s = t.extend(s, outside(dir), layer{above: filepath.ToSlash(rel)})
	}
	return s
}

// extend adds the rules of a directory's ignore files; place is the directory's
// position.
func (t *tree) extend(outer *scope, src source, place layer) *scope {
	s := outer
	change := func() {
		if s == outer {
			s = outer.with()
		}
	}
	add := func(k kind, set *ruleSet) {
		if set != nil {
			change()
			l := place
			l.set = set
			s.push(k, l)
		}
	}
	if src.has(".git") || src.has(".jj") {
		change()
		s.git, s.layers[gitignore], s.layers[exclude], s.layers[global] = true, nil, nil, nil
		repo := t.openRepository(src)
		s.fold = repo.fold
		add(exclude, repo.exclude)
		add(global, repo.global)
	} else if !s.git && t.isProject(src) {
		change()
		s.git = true
	}
	add(rgignore, t.load(src, ".rgignore", rgDialect, false))
	add(dotIgnore, t.load(src, ".ignore", rgDialect, false))
	if s.git {
		add(gitignore, t.load(src, ".gitignore", gitDialect, s.fold))
	}
	if s != outer {
		s.seal()
	}
	return s
}

// isGit reports whether an entry is .git: git's directory or, in a linked work
// tree, the file that names it.
func isGit(name string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return len(name) == 4 && strings.EqualFold(name, ".git")
	}
	return name == ".git"
}
