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

// searchPathCache removes unsafe entries from search paths (PATH). It caches
// the last result with the files that the result depends on: to check that
// these are unchanged is faster than to resolve a dozen directories. It is
// safe for concurrent use. A nil *searchPathCache caches nothing.
type searchPathCache struct {
	mu       sync.Mutex
	lastPath *safeSearchPath // nil before the first call
}

// safeSearchPath is the result of removing the unsafe entries of a search path
// (PATH), with the files that it depends on.
type safeSearchPath struct {
	path        string
	writable    []string // directories that commands may write into
	safe        string   // path without unsafe entries
	steps       []pathComponent
	uncacheable bool // the result depends on more than steps
}

// pathComponent is the state of one file on the way to a directory of a search
// path.
type pathComponent struct {
	path string
	mode fs.FileMode // its type; ModeIrregular if there is no file
	link string      // the target, if it is a link
}

// readPathComponent returns the current state of the file at path. It follows
// no link.
func readPathComponent(path string) pathComponent {
	s := pathComponent{path: path, mode: fs.ModeIrregular}
	if info, err := os.Lstat(path); err == nil {
		s.mode = info.Mode().Type()
	}
	if s.mode == fs.ModeSymlink {
		s.link, _ = os.Readlink(path)
	}
	return s
}

// removeUnsafeEntries returns path without entries that are relative or in a directory that
// commands may write into: another command would run programs that one command
// put there.
func (p *searchPathCache) removeUnsafeEntries(path string, writable []string) string {
	if p == nil {
		return newSafeSearchPath(path, writable).safe
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.lastPath; r == nil || r.path != path || !slices.Equal(r.writable, writable) || !r.isCurrent() {
		p.lastPath = newSafeSearchPath(path, slices.Clone(writable))
	}
	return p.lastPath.safe
}

// newSafeSearchPath removes the unsafe entries of path, see
// removeUnsafeEntries.
func newSafeSearchPath(path string, writable []string) *safeSearchPath {
	r := &safeSearchPath{path: path, writable: writable}
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || slices.Contains(kept, dir) {
			continue
		}
		resolved, ok := r.resolve(dir)
		if ok && !slices.ContainsFunc(writable, func(root string) bool { return supervise.IsBeneath(root, dir) || supervise.IsBeneath(root, resolved) }) {
			kept = append(kept, dir)
		}
	}
	r.safe = strings.Join(kept, string(filepath.ListSeparator))
	return r
}

// maxPathLinks bounds the links on the way to a directory.
const maxPathLinks = 255

// resolve is filepath.EvalSymlinks, and records in r.steps the files that its result
// depends on. It leaves paths with ".." to filepath.EvalSymlinks, because of the links
// before the "..". ok is false if the path leads to no directory.
func (r *safeSearchPath) resolve(dir string) (resolved string, ok bool) {
	rest := dir
	for links := 0; rest != "" && links <= maxPathLinks; links++ {
		if strings.Contains(rest, "..") {
			r.uncacheable = true
			resolved, err := filepath.EvalSymlinks(dir)
			return resolved, err == nil
		}
		if resolved, rest = r.walkToLink(filepath.Clean(rest)); resolved != "" {
			return resolved, true
		}
	}
	return "", false
}

// walkToLink walks along a path up to its first link. It returns the path with
// this link replaced by its target as next, or, if there is no link, the path
// as resolved. If the path leads to no directory, both are "".
func (r *safeSearchPath) walkToLink(path string) (resolved, next string) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != filepath.Separator {
			continue
		}
		s := r.addStep(path[:end])
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

// addStep returns the state of a file. It records the state at the first call.
func (r *safeSearchPath) addStep(path string) pathComponent {
	for _, s := range r.steps {
		if s.path == path {
			return s
		}
	}
	s := readPathComponent(path)
	r.steps = append(r.steps, s)
	return s
}

// isCurrent reports whether all recorded files are unchanged, so that the
// result still holds.
func (r *safeSearchPath) isCurrent() bool {
	return !r.uncacheable && !slices.ContainsFunc(r.steps, func(s pathComponent) bool { return readPathComponent(s.path) != s })
}
