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
//
// # Writing
//
// A name to be written is found once, too, and its directory is held:
//
//	target, err := fs.OpenForWrite("src/main.go") // changes nothing yet
//	defer target.Close()
//	file, err := target.Open() // the version that the change is made from
//	done, err := target.Replace(ctx, sandbox.Bytes(after), sandbox.ReplaceOptions{Expect: &file.Stat})
//
// Replace is all or nothing. The new content is written to a file without a
// name (O_TMPFILE; elsewhere to .toolroom-*.tmp beside the file, which the
// next write clears should its writer be killed), gets mode, owner, access
// list and extended attributes of the old one, is synced, and takes its name
// in one step, after a last look whether that is still the version expected.
// A new file never takes the place of one that appeared meanwhile. Where a
// file cannot be replaced it is written in place, and Written.InPlace says
// why. Who changes a file takes the lock first: see state.Store.Lock.
//
// What is never written: read-only roots, secrets, what would later be run
// or obeyed by something unconfined (FS.Protected; of a repository's config
// file only the settings that run programs, GitRuns), special files, and a
// file without write permission, even where it could be replaced. An inode
// with other names (hard links) is not written through unless asked for.
//
// On Linux everything goes by descriptors. Elsewhere os.Root does it, and
// extended attributes are not kept.
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
	open   opener

	mu      sync.Mutex
	current *FS
	key     string            // the sources that current was opened from
	pinned  map[string]string // source directory to the real path it had first

	linksRead time.Time // of credential stores
	looked    map[string]*lookedAt
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
	if s.current != nil && s.key == key && s.current.fresh() && !s.relinked(s.current) {
		return s.current, nil
	}
	opened, err := s.openRoots(specs)
	if err != nil {
		return nil, err
	}
	s.current, s.key = opened, key
	return opened, nil
}
