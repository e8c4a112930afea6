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

// searchPaths reduces search paths. It remembers the last result and what that was
// found by: to resolve a dozen directories takes longer than to ask whether all that
// is on the way to them is what it was. It is safe for concurrent use.
type searchPaths struct {
	mu   sync.Mutex
	last *reduced
}

// reduced is a search path without what must not be in it.
type reduced struct {
	path     string
	writable []string
	kept     string
	steps    []step
	loose    bool // not all that it goes by was noted
}

// step is a file on the way to a directory.
type step struct {
	path string
	mode fs.FileMode // its type; ModeIrregular where there is none
	link string      // where it leads, if it is a link
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

// reduce leaves out entries that are relative or in a directory that commands may
// write into: what one command puts there another would run.
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

// maxLinks is how many links may be on the way to a directory.
const maxLinks = 255

// resolve is filepath.EvalSymlinks, and notes all that it goes by. What .. means
// where links are about is left to that.
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

// follow goes along a path to its end, which it then returns, or to the first link
// on it, and returns the path with what the link names in its place.
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

// step notes a file, once.
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

// current reports whether everything leads where it led.
func (r *reduced) current() bool {
	return !r.loose && !slices.ContainsFunc(r.steps, func(s step) bool { return stepAt(s.path) != s })
}
