package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// isPending reports whether a directory in the roots exists only in pending
// changes.
func (s *sessions) isPending(fsys *sandbox.FS, dir string) bool {
	return s.isPendingDir != nil && isInRoots(fsys, dir) && filepath.Clean(dir) == dir && s.isPendingDir(dir)
}

// updateDir stores the directory that useNearestDir found for a session, unless
// the session has changed its directory since.
func (s *sessions) updateDir(b commandStart, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.getOrCreate(b.session); from != "" && one.dir == from {
		one.dir = b.dir
	}
}

// useNearestDir sets b.dir to dir, or to the nearest existing directory above
// it in the roots, with a note. "" for dir, or none in the roots, means the
// first root.
func (b *commandStart) useNearestDir(fsys *sandbox.FS, dir string) {
	b.dir = fsys.Roots()[0].Path
	if dir == "" {
		return
	}
	for at := dir; ; at = filepath.Dir(at) {
		if isInRoots(fsys, at) {
			if opened, err := fsys.WithNearbySuggestions().OpenDir(at); err == nil {
				b.dir = opened.Path()
				opened.Close()
				if isInRoots(fsys, b.dir) {
					break
				}
				b.dir = fsys.Roots()[0].Path
			}
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if b.dir != dir {
		b.notes = append(b.notes, fmt.Sprintf("the working directory %s no longer exists; the command ran in %s", fsys.Display(dir), fsys.Display(b.dir)))
	}
}

// isInRoots reports whether an absolute path is in a root. Directories that are
// readable in addition to the roots do not count.
func isInRoots(fsys *sandbox.FS, path string) bool {
	return slices.ContainsFunc(fsys.Roots(), func(r sandbox.Root) bool {
		return path == r.Path || strings.HasPrefix(path, strings.TrimSuffix(r.Path, "/")+"/")
	})
}

// nextDir returns the next command's working directory, after a command that
// began in from and ended in to: to, or the nearest existing directory above it
// if it was removed. If to is outside the roots, it returns from and false.
func nextDir(fsys *sandbox.FS, from, to string) (dir string, ok bool) {
	if to == from {
		return from, true
	}
	opened, err := fsys.OpenDir(to)
	if err == nil {
		defer opened.Close()
		if isInRoots(fsys, opened.Path()) {
			return opened.Path(), true
		}
	} else if toolerr.Is(err, toolerr.NotFound) && isInRoots(fsys, to) {
		healed := &commandStart{}
		healed.useNearestDir(fsys, to)
		return healed.dir, true
	}
	return from, false
}
