// Package sandbox is what a file tool may touch. It turns the paths that a
// model names into open files and directories, and never leaves the roots
// that the user configured.
//
// A path is resolved once, to a descriptor, link by link, and only the
// descriptor is used afterwards: there is no check of a string followed by
// an open of the same string. On Linux the kernel keeps each step beneath
// its root (openat2); elsewhere, and where a container forbids that call,
// os.Root does. Special files are refused without being opened, files that
// look like credentials without being read.
//
// A Sandbox is made at start and opens nothing; each call asks it for the FS
// in force, which is the set of opened roots:
//
//	box := sandbox.New(config)
//	fs, err := box.FS(ctx) // NO_ROOT, ROOT_REFUSED, NOT_FOUND
//	f, err := fs.Open("src/main.go")
//
// Every error is a toolerr.Error whose text may be shown to the model.
package sandbox

import (
	"context"
	"os"
	"sync"
)

// Root is a directory that tools may use, with everything beneath it.
type Root struct {
	Path     string // absolute, links resolved
	ReadOnly bool   // nothing in it may be written
}

// Sandbox finds the roots in force and opens them. It is safe for
// concurrent use.
type Sandbox struct {
	config Config
	open   opener

	mu      sync.Mutex
	current *FS
	key     string            // the sources that current was opened from
	pinned  map[string]string // source directory to the real path it had first
}

// New returns a sandbox for c. It touches neither the disk nor the
// environment, so that starting costs nothing.
func New(c Config) *Sandbox {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	return &Sandbox{config: c, open: openFastest, pinned: map[string]string{}}
}

// FS returns the roots in force for this call, opened once and shared by all
// calls until they change: because the client offers other roots, or because
// a root was deleted and made anew.
//
// Errors are not remembered: a directory that appears later is found by the
// next call.
func (s *Sandbox) FS(ctx context.Context) (*FS, error) {
	specs, err := s.rootSpecs(ctx)
	if err != nil {
		return nil, err
	}
	key := specKey(specs)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.key == key && s.current.fresh() {
		return s.current, nil
	}
	opened, err := s.openRoots(specs)
	if err != nil {
		return nil, err
	}
	s.current, s.key = opened, key
	return opened, nil
}
