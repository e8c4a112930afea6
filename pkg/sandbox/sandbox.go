// Package sandbox opens files without leaving the configured roots: it turns
// the paths that a model names into open files and directories.
//
// A path is resolved once, to a descriptor, link by link, and only the
// descriptor is used afterwards. A string is never checked first and opened
// later. On Linux the kernel keeps each step beneath its root (openat2). On
// other systems, and in containers that forbid that call, os.Root does. Special
// files are refused without being opened, and files that look like credentials
// without being read.
//
// A Sandbox is made at start and opens nothing. Each call asks it for the FS in
// force, the set of opened roots:
//
//	box := sandbox.New(config)
//	fs, err := box.FS(ctx) // NO_ROOT, ROOT_REFUSED, NOT_FOUND
//	f, err := fs.Open("src/main.go")
//
// Every error is a toolerr.Error whose text may be shown to the model.
//
// # Writing
//
// A name to be written is resolved once, too, and its directory is held:
//
//	target, err := fs.OpenForWrite("src/main.go") // changes nothing yet
//	defer target.Close()
//	file, err := target.Open() // the version that the change is made from
//	done, err := target.Replace(ctx, sandbox.Bytes(after), sandbox.ReplaceOptions{Expect: &file.Stat})
//
// Replace is all or nothing. It writes the new content to a file without a name
// (O_TMPFILE; on other systems to .toolroom-*.tmp next to the file, which the
// next write removes if its writer was killed). That file gets the mode, owner,
// access list and extended attributes of the old one, is synced, and takes the
// name in one step, after a last check that the old file is still the expected
// version. A new file never replaces one that appeared meanwhile. A file that
// cannot be replaced is written in place, and Written.InPlace gives the reason.
// Callers lock a file before they change it: see state.Store.Lock.
//
// These are never written: read-only roots; secrets; files that an unconfined
// program would later run or read its settings from (FS.Protected; in a
// repository's config only the settings that run programs, gitfile.DangerousSettings); special
// files; and files without write permission, even if they could be replaced. A
// file with several hard links is not written through unless asked for.
//
// On Linux all operations use descriptors. On other systems they use os.Root,
// and extended attributes are not kept.
package sandbox

import (
	"context"
	"os"
	"sync"
	"time"
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
	open   rootOpener

	mu      sync.Mutex
	current *FS
	key     string            // the sources that current was opened from
	pinned  map[string]string // source directory to the real path it had first

	linksCheckedAt time.Time // of credential stores
	listings       map[string]*dirListing
}

// New returns a sandbox for c. It touches neither the disk nor the
// environment, so that starting costs nothing.
func New(c Config) *Sandbox {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	return &Sandbox{config: c, open: openRootObject, pinned: map[string]string{}}
}

// FS returns the roots in force for this call, opened once and shared by all
// calls until they change: because the client sends other roots, or because a
// root was deleted and made again.
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
	if s.current != nil && s.key == key && s.current.isCurrent() && !s.haveLinksChanged(s.current) {
		return s.current, nil
	}
	opened, err := s.openRoots(specs)
	if err != nil {
		return nil, err
	}
	s.current, s.key = opened, key
	return opened, nil
}
