package proc

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// searchPaths removes unsafe entries from search paths. It caches the last
// result with the files it depends on: to check that these are unchanged is
// faster than to resolve a dozen directories. It is safe for concurrent use.
type searchPaths struct {
	mu   sync.Mutex
	last *reduced
}

// reduced is a search path and its safe part.
type reduced struct {
	path     string
	writable []string
	kept     string
	steps    []step
	loose    bool // the result depends on more than steps
}

// step is a file on the path to a directory.
type step struct {
	path string
	mode fs.FileMode // its type; ModeIrregular if there is no file
	link string      // the target, if it is a link
}

func stepAt(path string) step {
	s := step{path: path, mode: fs.ModeIrregular}
	if info, err := os.Lstat(path); err == nil {
		s.mode = info.Mode().Type()
	}
	if s.mode == fs.ModeSymlink {
		s.link, _ = os.Readlink(path)
	}
	return s
}

// reduce removes entries that are relative or in a directory that commands may
// write into: another command would run programs that one put there.
func (p *searchPaths) reduce(path string, writable []string) string {
	if p == nil {
		return reduce(path, writable).kept
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.last; r == nil || r.path != path || !slices.Equal(r.writable, writable) || !r.current() {
		p.last = reduce(path, slices.Clone(writable))
	}
	return p.last.kept
}

func reduce(path string, writable []string) *reduced {
	r := &reduced{path: path, writable: writable}
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || slices.Contains(kept, dir) {
			continue
		}
		real, ok := r.resolve(dir)
		if ok && !slices.ContainsFunc(writable, func(root string) bool { return supervise.Beneath(root, dir) || supervise.Beneath(root, real) }) {
			kept = append(kept, dir)
		}
	}
	r.kept = strings.Join(kept, string(filepath.ListSeparator))
	return r
}

// maxLinks bounds the links on the path to a directory.
const maxLinks = 255

// resolve is filepath.EvalSymlinks, and records the files it depends on. It
// leaves paths with ".." to filepath.EvalSymlinks, because of the links before
// the "..".
func (r *reduced) resolve(dir string) (real string, ok bool) {
	rest := dir
	for links := 0; rest != "" && links <= maxLinks; links++ {
		if strings.Contains(rest, "..") {
			r.loose = true
			real, err := filepath.EvalSymlinks(dir)
			return real, err == nil
		}
		if real, rest = r.follow(filepath.Clean(rest)); real != "" {
			return real, true
		}
	}
	return "", false
}

// follow walks along a path. At the end it returns the path as real. At the
// first link it returns the path with the link replaced by its target. If the
// path leads nowhere, both are "".
func (r *reduced) follow(path string) (real, link string) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != filepath.Separator {
			continue
		}
		s := r.step(path[:end])
		switch {
		case s.mode == fs.ModeSymlink && filepath.IsAbs(s.link):
			return "", s.link + path[end:]
		case s.mode == fs.ModeSymlink && s.link != "":
			return "", filepath.Dir(s.path) + "/" + s.link + path[end:]
		case s.mode != fs.ModeDir && (s.mode != 0 || end < len(path)):
			return "", ""
		}
	}
	return path, ""
}

// step records a file once, and returns its state.
func (r *reduced) step(path string) step {
	for _, s := range r.steps {
		if s.path == path {
			return s
		}
	}
	s := stepAt(path)
	r.steps = append(r.steps, s)
	return s
}

// current reports whether all recorded files are unchanged.
func (r *reduced) current() bool {
	return !r.loose && !slices.ContainsFunc(r.steps, func(s step) bool { return stepAt(s.path) != s })
}
