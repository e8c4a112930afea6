package state

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// undoDir holds the undo journal, one file for each change. Its name contains
// the version of the format.
const undoDir = "undo-1"

const (
	// defaultUndoContent is the default of Config.UndoContent, in bytes.
	defaultUndoContent = 32 << 20

	// maxUndoDepth is the number of changes kept for one file.
	maxUndoDepth = 16
	// minCompressed is the size in bytes from which removed content is
	// compressed.
	minCompressed = 64 << 10
	// maxUndoGrowth bounds the growth of the journal beyond its limit between two
	// prunings, on average, as a part of UndoBytes.
	maxUndoGrowth = 1.0 / 16
)

// PendingChange is a recorded change that may not have been made yet. Its methods do
// nothing on nil.
type PendingChange struct {
	dir, name string
}

// RecordChange writes a change to the journal before it is made. Call Commit after
// making the change, or Discard if it failed. A crash in between loses nothing,
// since a record is ignored if the file does not have the content After.
//
// An error must not prevent the change; its text is the reason why it cannot be
// undone, for use after "no undo: ".
func (s *Store) RecordChange(c Change) (*PendingChange, error) {
	if s.config.Disabled {
		return nil, errors.New("no state is kept (--no-state)")
	}
	if n := int64(len(c.Removed)); n > s.config.UndoContent || n > s.config.UndoBytes {
		return nil, fmt.Errorf("the replaced text has %d bytes, more than the %d kept for undo", n, min(s.config.UndoContent, s.config.UndoBytes))
	}
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	dir, err := s.makeSubdir(undoDir)
	if err != nil {
		return nil, fmt.Errorf("the state directory cannot be used: %w", err)
	}
	data, err := encodeChange(&c)
	if err != nil {
		return nil, err
	}
	p := &PendingChange{dir: dir, name: fmt.Sprintf("%s-%016x-%08x", recordName(c.Path), uint64(time.Now().UnixNano()), rand.Uint32())}
	if err := replaceAtomically(dir, p.name+pendingSuffix, data); err != nil {
		return nil, fmt.Errorf("the state directory cannot be written: %w", err)
	}
	s.pruneUndo(dir, int64(len(data)))
	return p, nil
}

// pendingSuffix ends the name of a record whose change may not have been made.
const pendingSuffix = ".pending"

// Commit records that the change was made, and removes the oldest changes of the file
// beyond maxUndoDepth. It does nothing for nil. An error means that the change cannot be
// undone.
func (p *PendingChange) Commit() error {
	if p == nil {
		return nil
	}
	if err := os.Rename(filepath.Join(p.dir, p.name+pendingSuffix), filepath.Join(p.dir, p.name)); err != nil {
		return fmt.Errorf("the record was lost: %w", err)
	}
	// Remove the oldest changes of the file beyond the limit.
	names := changeRecordNames(p.dir, p.name[:strings.IndexByte(p.name, '-')])
	for _, name := range names[min(len(names), maxUndoDepth):] {
		os.Remove(filepath.Join(p.dir, name))
	}
	return nil
}

// Discard removes the record of a change that was not made.
func (p *PendingChange) Discard() {
	if p != nil {
		os.Remove(filepath.Join(p.dir, p.name+pendingSuffix))
	}
}

// LastChange returns the last change of a file, if it can be undone because the
// file still has the content now that the change gave it. It returns NOT_FOUND
// if no change is recorded, and STALE if something else has changed the file
// since.
func (s *Store) LastChange(path string, now Version) (*Change, error) {
	shown := pathname.Escape(filepath.Base(path))
	dir, err := s.makeSubdir(undoDir)
	if err != nil {
		return nil, toolerr.New(toolerr.NotFound, "nothing to undo: no state is kept, so no change to %s is recorded: %w", shown, err)
	}
	for _, name := range changeRecordNames(dir, recordName(path)) {
		c, err := readChange(filepath.Join(dir, name), s.config.UndoContent)
		if err != nil || c.Path != path || time.Since(c.Time) > s.config.UndoAge {
			continue
		}
		if c.After == now {
			c.store, c.recordFile = s, name
			return c, nil
		}
		if !strings.HasSuffix(name, pendingSuffix) {
			return nil, toolerr.New(toolerr.Stale, "nothing was undone: another program changed %s after %s wrote it at %s; edit the file instead",
				shown, pathname.Escape(c.Tool), c.Time.Format(time.DateTime)).With("changed_by", c.Tool)
		}
	}
	return nil, toolerr.New(toolerr.NotFound, "nothing to undo: no change to %s by these tools is recorded; use edit to change the file back", shown)
}

// Changes returns the recorded changes of all files since a time, newest first.
// They may include a change that was recorded but not made.
func (s *Store) Changes(since time.Time) []*Change {
	dir, err := s.makeSubdir(undoDir)
	if err != nil {
		return nil
	}
	var all []*Change
	for _, name := range changeRecordNames(dir, "") {
		if !wasRecordedSince(name, since) {
			continue
		}
		c, err := readChange(filepath.Join(dir, name), s.config.UndoContent)
		if err == nil && !c.Time.Before(since) {
			c.store, c.recordFile = s, name
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *Change) int { return b.Time.Compare(a.Time) })
	return all
}

// wasRecordedSince reports whether a record was written at or after since, according to
// its name. It returns false for a name of another form.
func wasRecordedSince(name string, since time.Time) bool {
	parts := strings.Split(strings.TrimSuffix(name, pendingSuffix), "-")
	if len(parts) != 3 {
		return false
	}
	at, err := strconv.ParseUint(parts[1], 16, 64)
	return err == nil && (since.Before(time.Unix(0, 0)) || at >= uint64(since.UnixNano()))
}

// Reopen marks the change, which LastChange returned, as possibly not made,
// before the caller undoes it. After undoing it call Discard, or Commit if that
// failed. If the process is killed in between, the record does not block
// earlier changes. It returns nil if the record cannot be marked.
func (c *Change) Reopen() *PendingChange {
	dir, err := c.store.makeSubdir(undoDir)
	if err != nil {
		return nil
	}
	p := &PendingChange{dir: dir, name: strings.TrimSuffix(c.recordFile, pendingSuffix)}
	if c.recordFile == p.name {
		if os.Rename(filepath.Join(dir, c.recordFile), filepath.Join(dir, c.recordFile+pendingSuffix)) != nil {
			return nil // Forget may succeed later
		}
		c.recordFile += pendingSuffix
	}
	return p
}

// Forget removes the change from the journal after it was undone, so that the change
// before it becomes the last one. It returns the error of removing the record.
func (c *Change) Forget() error {
	dir, err := c.store.makeSubdir(undoDir)
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, c.recordFile))
}

// changeRecordNames returns the names of the records of the file with the hash
// pathHash, newest first. With "" it returns those of all files, in order of their
// hashes. It returns nil if dir cannot be read.
func changeRecordNames(dir, pathHash string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if (pathHash == "" || strings.HasPrefix(entry.Name(), pathHash+"-")) && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

// pruneUndo keeps the journal within its limits, after a record of size bytes
// was written. Processes that live for only one call must prune as well, but
// not each of them may read the whole journal. So it prunes at random, with a
// probability proportional to size.
func (s *Store) pruneUndo(dir string, size int64) {
	due := rand.Float64()*maxUndoGrowth*float64(s.config.UndoBytes) < float64(max(size, blockSize))
	// If pruning fails now, it may succeed next time.
	_ = pruneUnlessRecent(dir, due, s.config.UndoBytes, s.config.UndoAge)
}
