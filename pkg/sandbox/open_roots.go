package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// openRoot is a root with its open directory.
type openRoot struct {
	Root
	aliases []string // other absolute paths by which it was given
	object  object
	dev     uint64 // its file system, which is not a pseudo file system
}

// FS is a set of opened roots. A call can open nothing outside of it. It is safe for
// concurrent use. It has no Close: the garbage collector closes its descriptors.
type FS struct {
	roots  []*openRoot    // those of Config.Readable last
	listed int            // number of roots
	absent []string       // directories of Config.Readable that do not exist
	linked *linkedSecrets // files in the roots that are secret because of links elsewhere
	policy *secretPolicy
	writes func() *writePolicy
	finder Finder // for error texts; nil: none

	linkedSettings *linkedSettings
}

// Roots returns the roots. Relative paths start from the first one.
func (f *FS) Roots() []Root {
	roots := make([]Root, f.listed)
	for i, r := range f.roots[:f.listed] {
		roots[i] = r.Root
	}
	return roots
}

// Paths returns the paths of the roots, in the order of Roots.
func (f *FS) Paths() []string {
	paths := make([]string, f.listed)
	for i, r := range f.roots[:f.listed] {
		paths[i] = r.Path
	}
	return paths
}

// openRoots resolves and checks the directories, restricts the configured ones to those
// of the client, and opens them. It returns the error of the first configured directory
// that is refused. Refused directories of the client are left out; if no root remains,
// it returns the last refusal.
func (s *Sandbox) openRoots(specs []rootSpec) (*FS, error) {
	var configured, offered []rootCandidate
	var refusal error
	for _, spec := range specs {
		// A client's root only restricts the configured ones, so it may be broad.
		anyBreadth := s.config.AllowRootDir || spec.client && len(configured) > 0
		c, err := s.examineRoot(spec, anyBreadth)
		switch {
		case err == nil && spec.client:
			offered = append(offered, c)
		case err == nil:
			configured = append(configured, c)
		case spec.client:
			// A root of the client that is refused does not affect its other
			// roots. The refusal is reported if no root remains.
			refusal = err
		default:
			return nil, err
		}
	}
	inForce := restrictToConfigured(configured, offered)
	if len(inForce) == 0 {
		return nil, refusal
	}
	opened := &FS{linkedSettings: &linkedSettings{}, policy: s.secretPolicy(), writes: sync.OnceValue(s.writePolicy), finder: s.config.Finder}
	for _, c := range inForce {
		root, err := s.openCandidate(c)
		if err != nil {
			return nil, err
		}
		opened.roots = append(opened.roots, root)
	}
	opened.listed = len(opened.roots)
	s.openReadableDirs(opened)
	opened.linked = s.findLinkedSecrets(opened)
	return opened, nil
}

// openReadableDirs adds the directories of Config.Readable that exist. It ignores
// those that cannot be opened, and records the missing ones in f.absent.
func (s *Sandbox) openReadableDirs(f *FS) {
	dirs := s.config.Readable
	if s.config.ReadableFor != nil {
		if dir := s.config.ReadableFor(f.Paths()); dir != "" {
			dirs = append(dirs[:len(dirs):len(dirs)], dir)
		}
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil {
			f.absent = append(f.absent, dir)
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if root, err := s.openCandidate(rootCandidate{real: real, aliases: []string{dir}, readOnly: true}); err == nil {
			f.roots = append(f.roots, root)
		}
	}
}

// rootCandidate is an existing directory that may become a root.
type rootCandidate struct {
	real     string
	aliases  []string
	readOnly bool
}

// examineRoot resolves the links of a root's path once. It returns NOT_A_DIRECTORY for
// another file and, unless allowBroad is set, ROOT_REFUSED for a directory that is too
// broad.
func (s *Sandbox) examineRoot(spec rootSpec, allowBroad bool) (rootCandidate, error) {
	shown := pathname.Escape(spec.dir)
	if err := checkName(spec.dir); err != nil {
		return rootCandidate{}, err
	}
	real, err := s.realPath(spec.dir)
	if err != nil {
		return rootCandidate{}, rootError(shown, spec.source, err)
	}
	info, err := os.Lstat(real)
	if err != nil {
		return rootCandidate{}, rootError(shown, spec.source, err)
	}
	if !info.IsDir() {
		return rootCandidate{}, toolerr.New(toolerr.NotADirectory, "root %s (from %s) is not a directory: name the directory that holds it", shown, spec.source)
	}
	if !allowBroad {
		if why := s.reasonTooBroad(real, info); why != "" {
			return rootCandidate{}, toolerr.New(toolerr.RootRefused,
				"root %s (from %s) is refused: it is %s; name a subdirectory with --root DIR, or allow it with --allow-root-dir", shown, spec.source, why)
		}
	}
	return rootCandidate{real: real, aliases: []string{spec.dir}, readOnly: spec.readOnly || s.config.ReadOnly}, nil
}

// realPath resolves the links in a root's path when it is first needed, and keeps the
// result. Otherwise a command that may write in the link's directory could replace the
// link and so move the root.
func (s *Sandbox) realPath(dir string) (string, error) {
	if real, ok := s.pinned[dir]; ok {
		return real, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	s.pinned[dir] = real
	return real, nil
}

// rootError returns the error for a root that cannot be opened: NOT_FOUND if it
// does not exist or was replaced, else the code of err. shown is the root as
// users see it, source says who named it, such as "--root".
func rootError(shown, source string, err error) error {
	if os.IsNotExist(err) {
		return toolerr.New(toolerr.NotFound, "root %s (from %s) does not exist: create it, or name another with --root DIR", shown, source)
	}
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, errChanged) {
		return toolerr.New(toolerr.NotFound, "root %s (from %s) was replaced by another directory after the server first used it: restart the server to use the new one", shown, source)
	}
	return toolerr.New(toolerr.CodeOf(err), "root %s (from %s) cannot be opened: %w", shown, source, withoutOpAndPath(err))
}

// restrictToConfigured returns the parts of the configured roots that are in the
// client's roots. A client's root never adds a directory. If the two have nothing in
// common, the configured roots remain. Without configured roots, the client's roots
// are used.
func restrictToConfigured(configured, offered []rootCandidate) []rootCandidate {
	if len(configured) == 0 {
		return withoutDuplicates(offered)
	}
	var both []rootCandidate
	for _, c := range configured {
		for _, o := range offered {
			switch {
			case contains(c.real, o.real):
				o.readOnly = o.readOnly || c.readOnly
				both = append(both, o)
			case contains(o.real, c.real):
				both = append(both, c)
			}
		}
	}
	if len(both) == 0 {
		return withoutDuplicates(configured)
	}
	return withoutDuplicates(both)
}

// withoutDuplicates removes repeated directories and joins their names. A directory
// that is given both as read-only and as writable is read-only.
func withoutDuplicates(list []rootCandidate) []rootCandidate {
	var out []rootCandidate
next:
	for _, c := range list {
		for i := range out {
			if out[i].real == c.real {
				out[i].readOnly = out[i].readOnly || c.readOnly
				out[i].aliases = append(out[i].aliases, c.aliases...)
				continue next
			}
		}
		out = append(out, c)
	}
	return out
}

// openCandidate opens a directory as a root. Its path contains no links. It returns
// ROOT_REFUSED for a pseudo file system, unless --allow-root-dir is given.
func (s *Sandbox) openCandidate(c rootCandidate) (*openRoot, error) {
	h, err := s.open(c.real)
	if err != nil {
		return nil, rootError(pathname.Escape(c.real), "the configuration", err)
	}
	root := &openRoot{
		Root: Root{Path: c.real, ReadOnly: c.readOnly}, aliases: c.aliases,
		object: h, dev: h.stat().Dev,
	}
	if h.isPseudo() && !s.config.AllowRootDir {
		return nil, toolerr.New(toolerr.RootRefused,
			"root %s is refused: it is a pseudo file system, not files; allow it with --allow-root-dir", pathname.Escape(c.real))
	}
	return root, nil
}

// isCurrent reports whether each root's path still leads to the opened directory. If a
// root was deleted and created again, the roots are opened again.
func (f *FS) isCurrent() bool {
	for _, dir := range f.absent {
		if _, err := os.Lstat(dir); err == nil {
			return false
		}
	}
	for _, r := range f.roots {
		info, err := os.Lstat(r.Path)
		if err != nil || !info.IsDir() || !r.object.isSameFile(info) {
			return false
		}
	}
	return true
}

// contains reports whether path is dir or is in it, comparing whole components. Both
// are absolute and clean.
func contains(dir, path string) bool {
	_, ok := relativeTo(dir, path)
	return ok
}

// relativeTo returns path relative to dir, "." for dir itself. ok is false if path is not
// in dir.
func relativeTo(dir, path string) (rel string, ok bool) {
	if path == dir {
		return ".", true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.CutPrefix(path, dir)
}
