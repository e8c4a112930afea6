// Package undo reverts the changes of a command in its roots, from the record
// written by the command's supervisor (see supervise.UndoStep).
//
//	store := undo.New(dir)               // proc.Config.UndoDir
//	record, err := store.Open(result.Undo)
//	report, err := record.Undo(protected)
//
// Undo restores contents, modes, owners, times, links and names. It changes
// nothing if somebody else has changed a file since the command ended. A call
// after an interruption continues at the step where the last one stopped.
//
// A record is not a security boundary. Undo only restores earlier states of
// files in the roots, and a command can only damage its own record. An earlier
// state may be one that another command left for a moment: call Undo within
// proc.Runner.WithWriteGuard.
package undo

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Store is the directory of undo records. It is safe for concurrent use by
// goroutines and processes.
type Store struct {
	dir string
}

// New returns the store at dir, an absolute path.
func New(dir string) *Store { return &Store{dir: dir} }

// Record is the undo record of a command: the state of each file before the
// command changed it.
type Record struct {
	ID      string
	Command string // at most its first 300 bytes
	Began   time.Time
	Roots   []string // the writable roots

	dir string

	stampsHaveAttributes bool // set by steps; false for a record of an earlier version
}

// Report describes what Undo did.
type Report struct {
	Removed, Restored, Moved int // numbers of entries
	// NotHeld are paths whose content was not recorded. They were not changed.
	NotHeld []string
	// LostAccess are paths whose access lists were restored without the entries of users
	// and groups that the command's user namespace does not have.
	LostAccess []string
	// Unchecked means that the end of the command was not recorded, so that
	// changes by others could not be detected.
	Unchecked bool
}

// List returns the records of commands with at least one of roots, the newest first.
// Records that cannot be read are omitted. It returns nil if the store cannot be read.
func (s *Store) List(roots []string) (all []*Record) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		r, err := s.Open(e.Name())
		if err == nil && slices.ContainsFunc(r.Roots, func(root string) bool { return slices.Contains(roots, root) }) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Record) int { return cmp.Or(b.Began.Compare(a.Began), strings.Compare(b.ID, a.ID)) })
	return all
}

// Open returns the record with an id. It returns a NOT_FOUND error if none has
// it.
func (s *Store) Open(id string) (*Record, error) {
	if filepath.Base(id) != id || !strings.HasPrefix(id, "u") {
		return nil, notFound(id)
	}
	r := &Record{ID: id, dir: filepath.Join(s.dir, id)}
	f, err := os.Open(filepath.Join(r.dir, "log"))
	if err != nil {
		return nil, notFound(id)
	}
	defer f.Close() //nolint:errcheck // only read
	var head supervise.UndoStep
	if supervise.ReadMessage(bufio.NewReader(f), &head) != nil || head.Kind != supervise.UndoHead {
		return nil, notFound(id)
	}
	r.Command, r.Roots, r.Began = head.Path, head.Roots, time.Unix(0, head.Time)
	return r, nil
}

// notFound returns the NOT_FOUND error for a record that does not exist.
func notFound(id string) error {
	return toolerr.New(toolerr.NotFound, "there is no undo record %s: it was undone, or it is too old", pathname.Escape(id))
}

// Prune removes the records older than maxAge, and then the oldest ones until
// the rest takes at most maxBytes. It keeps records of running commands. The age of a
// record is the time since the end of its command.
func (s *Store) Prune(maxBytes int64, maxAge time.Duration) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	type record struct {
		dir  string
		at   time.Time
		size int64
	}
	var all []record
	for _, e := range entries {
		r := record{dir: filepath.Join(s.dir, e.Name())}
		// An undo of a later command changes the time of the directory, not of the log.
		info, err := os.Lstat(filepath.Join(r.dir, "log"))
		if err != nil {
			info, err = e.Info()
		}
		if err == nil {
			r.at = info.ModTime()
		}
		filepath.WalkDir(r.dir, func(_ string, e fs.DirEntry, err error) error { //nolint:errcheck // a vanished file has size 0
			if err != nil { // e is nil if another process removed the record
				return nil
			}
			if info, err := e.Info(); err == nil {
				r.size += max(info.Size(), 4096)
			}
			return nil
		})
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b record) int { return b.at.Compare(a.at) })
	var total int64
	for _, r := range all {
		if total += r.size; total > maxBytes || time.Since(r.at) > maxAge {
			unlock, err := lockLog(filepath.Join(r.dir, "log"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				continue // its command still runs
			}
			removeRecord(r.dir) //nolint:errcheck // the next Prune tries again
			if err == nil {
				unlock()
			}
		}
	}
}

// removeRecord removes the record in dir, its log first: without it, no record is found if
// the removal is interrupted.
func removeRecord(dir string) error {
	if err := os.Remove(filepath.Join(dir, "log")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// Unheld returns the files that the command changed and Undo cannot restore, each path
// once, with their sizes before the change. stopped is the reason why Undo can restore
// nothing, or "". It can be called while the command runs. Both are empty if Undo can
// restore everything.
func (r *Record) Unheld() (files []Unheld, stopped string) {
	f, err := os.Open(filepath.Join(r.dir, supervise.UndoUnheld))
	if err != nil {
		return nil, ""
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewReader(f)
	for {
		var next supervise.UndoStep
		if supervise.ReadMessage(in, &next) != nil {
			return files, stopped
		}
		if next.Kind == supervise.UndoStopped {
			stopped = next.Path
			continue
		}
		info, err := os.Lstat(next.Path)
		if err == nil && isSameVersion(info, &next.Before) || slices.ContainsFunc(files, func(u Unheld) bool { return u.Path == next.Path }) {
			continue // the command only opened it
		}
		files = append(files, Unheld{Path: next.Path, Size: next.Before.Size})
	}
}

// Unheld is a file whose earlier content is not recorded.
type Unheld struct {
	Path string
	Size int64
}

// steps reads the log. It returns the steps of the command, the stamps taken at its
// end, and the time of its end in Unix nanoseconds, 0 if the log is incomplete. It
// returns NOT_FOUND without a log, LIMIT_REACHED if the recording stopped, and
// EXECUTION_ERROR for a damaged log.
func (r *Record) steps() (steps, stamps []supervise.UndoStep, ended int64, err error) {
	f, err := os.Open(filepath.Join(r.dir, "log"))
	if err != nil {
		return nil, nil, 0, notFound(r.ID)
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		var next supervise.UndoStep
		err := supervise.ReadMessage(in, &next)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return steps, stamps, ended, nil
		}
		if err != nil {
			return nil, nil, 0, toolerr.New(toolerr.ExecutionError, "the undo record %s is damaged: %w", r.ID, err)
		}
		switch next.Kind {
		case supervise.UndoHead:
		case supervise.UndoStopped:
			return nil, nil, 0, toolerr.New(toolerr.LimitReached, "%s cannot be undone: %s, and no more is recorded", r.ID, next.Path)
		case supervise.UndoStamp:
			stamps = append(stamps, next)
		case supervise.UndoEnd:
			ended, r.stampsHaveAttributes = next.Time, next.Before.Held
		default:
			steps = append(steps, next)
		}
	}
}
