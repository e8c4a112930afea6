package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ReplaceOptions holds the caller's conditions for a Replace, and what Replace
// may do besides. The zero value replaces the current file or creates a missing
// one.
type ReplaceOptions struct {
	// Expect is the version from which the new content was made, as the Stat of the
	// file that Target.Open opened. If another version or no file is at the path, the
	// error is STALE. nil: the version at the time of the call.
	Expect *Stat
	// Create requires that the file does not exist. The error is EXISTS otherwise,
	// also if the file appears during the call.
	Create bool
	// MakeParents creates missing parent directories. Without it the error is
	// NOT_FOUND.
	MakeParents bool
	// Executable sets the execute bits of a new file that the umask permits.
	Executable bool
	// KeepHardlinks writes a file with several hard links in place, so that all of
	// them get the new content. Otherwise this path gets a new inode. Masked files are
	// always written in this way: under its other names, a separate file with the old
	// values would not be masked.
	KeepHardlinks bool
}

// Written describes what Replace did.
type Written struct {
	Created bool
	// InPlace is empty if the file was replaced in one step. Otherwise it is the
	// reason why the file's own bytes were overwritten, to follow "written in place,
	// since "; a crash at that moment leaves a mixture.
	InPlace string
	// OtherNames is the number of other hard links that still have the old content.
	OtherNames uint64
	// Parents holds the absolute paths of the created directories, outermost first.
	Parents []string
	// Dropped lists the attributes that the file lost: setuid and setgid bits and file
	// capabilities, which no write keeps.
	Dropped []string
	// Stat describes the written file.
	Stat Stat
	// Unsynced is set if the disk did not confirm the new name: the content is
	// written, but may be lost in a power failure.
	Unsynced error
}

// Bytes returns a write function for Replace with content in memory.
func Bytes(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// Replace writes new content to the file, completely or not at all: at any time, even
// after a crash, the path leads to the old file or to the complete new one. write is
// called once and may stream. Mode, owner, access list and extended attributes are
// kept.
//
// The new file is written next to the old one, synced, and renamed. If that is not
// possible (the directory is not writable, the owner cannot be kept, the file is a
// mount point), Replace reserves the space, writes the content to the file itself, and
// restores the old content if that fails: see Written.InPlace.
//
// After an error the file is unchanged. NO_SPACE, READ_ONLY, PERMISSION_DENIED and
// TOO_LARGE name the obstacle; STALE, EXISTS and CONFLICT mean that another program
// changed the file first. Cancelling ctx stops the call until its last step.
func (t *Target) Replace(ctx context.Context, write func(io.Writer) error, o ReplaceOptions) (*Written, error) {
	defer runtime.KeepAlive(t.fs)
	err := t.checkRepositoryWrite()
	if err == nil {
		write, err = t.checkConfigWrite(ctx, write)
	}
	if err != nil {
		return nil, t.fs.explainWriteError(t.name, err)
	}
	r := &replacement{Target: t, ctx: ctx, options: o, done: &Written{}}
	err = r.replaceOrCreate(write)
	if r.tempFile != nil {
		r.tempFile.discard()
	}
	if err != nil {
		r.removeParents()
	}
	r.close()
	if err != nil {
		return nil, t.fs.explainWriteError(t.name, err)
	}
	return r.done, nil
}

// replacement is the state of a running Replace.
type replacement struct {
	*Target
	ctx     context.Context
	options ReplaceOptions
	done    *Written

	old            *Stat     // the version to replace; nil for a new file
	tempFile       *tempFile // holds the new content
	createdParents []createdParent
}

// close closes the directories that makeParents opened.
func (r *replacement) close() {
	for _, p := range r.createdParents {
		p.in.close()
	}
}

// replaceOrCreate makes the replacement, or creates the file. It returns the
// system's errors, which explainWriteError converts.
func (r *replacement) replaceOrCreate(write func(io.Writer) error) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.checkExpected(); err != nil {
		return err
	}
	if err := r.makeParents(); err != nil {
		return err
	}
	r.dir.removeOldTempFiles()
	if r.old == nil {
		return r.create(write)
	}
	switch {
	case r.old.Nlink < 2:
	case r.options.KeepHardlinks:
		return r.writeInPlace(write, "it has several hard links, kept by --keep-hardlinks")
	case r.Masked || r.fs.MaskedFile(r.Path, *r.old):
		r.options.KeepHardlinks = true // a separate file with the values would no longer be masked
		return r.writeInPlace(write, "it has several hard links, which must stay masked")
	}
	why, err := r.createWithOldAttributes()
	if err != nil {
		return err
	}
	if r.tempFile == nil {
		return r.writeInPlace(write, why)
	}
	if err := r.writeContent(write); err != nil {
		return err
	}
	if why == "" {
		err = r.publish()
		if why = reasonNotReplaceable(err); why == "" {
			return err
		}
	}
	return r.writeInPlace(nil, why)
}

// checkExpected records in r.old the version that Replace will replace, nil if there is
// no file. It returns STALE if the caller expects another version, EXISTS if the file was
// to be created, and the system's error if it may not be written.
func (r *replacement) checkExpected() error {
	now, err := r.currentStat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if r.options.Expect != nil {
			return errGone(r.name)
		}
		return nil
	case err != nil:
		return err
	case r.options.Create:
		return errExists(r.name)
	case r.options.Expect != nil && !isSameVersion(now, *r.options.Expect):
		return errStale(r.name)
	}
	r.old = &now
	if err := r.dir.checkWritable(r.base); err != nil {
		return err
	}
	return nil
}

// isSameVersion reports whether a and b describe the same content of the same
// file: identity, size and times are equal.
func isSameVersion(a, b Stat) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.ChangeTime.Equal(b.ChangeTime)
}

// create writes a file that does not exist yet. It returns EXISTS if the file exists by
// then.
func (r *replacement) create(write func(io.Writer) error) error {
	perm := uint32(0o666)
	if r.options.Executable {
		perm = 0o777
	}
	var err error
	if r.tempFile, err = r.dir.newTempFile(r.base, perm); err != nil {
		return err
	}
	if err := r.writeContent(write); err != nil {
		return err
	}
	if err := r.checkParentInPlace(); err != nil {
		return err
	}
	if err := r.recheckRepositoryWrite(); err != nil {
		return err
	}
	if err := r.tempFile.publishNew(r.base); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return errExists(r.name)
		}
		return err
	}
	r.done.Created = true
	return r.syncAndRecord(r.tempFile.File)
}

// createWithOldAttributes creates the temporary file with the attributes of the
// old file. If an owner, mode or access list cannot be set, why names it, and
// there may be no temporary file.
func (r *replacement) createWithOldAttributes() (why string, err error) {
	old, _, err := r.dir.open(r.base, os.O_RDONLY)
	if errors.Is(err, fs.ErrPermission) {
		old, err = r.dir.openReadWithoutAccessTime(r.base)
	}
	if err != nil {
		return "", err
	}
	defer old.Close() // Windows does not replace an open file
	tempFile, err := r.dir.newTempFile(r.base, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return "its directory is not writable", nil
	}
	if err != nil {
		return "", err
	}
	r.tempFile = tempFile
	r.done.Dropped = lostPrivileges(old, *r.old)
	why, err = copyAttributes(old, tempFile.File, *r.old)
	return why, err
}

// lostPrivileges names the attributes of a file that no write keeps because
// they give rights to a process that runs it: "setuid", "setgid", "file
// capabilities".
func lostPrivileges(f *os.File, st Stat) (names []string) {
	if st.Mode&fs.ModeSetuid != 0 {
		names = append(names, "setuid")
	}
	if st.Mode&fs.ModeSetgid != 0 {
		names = append(names, "setgid")
	}
	if hasCapabilities(f) {
		names = append(names, "file capabilities")
	}
	return names
}

// writeContent writes the new content to the temporary file and syncs it.
func (r *replacement) writeContent(write func(io.Writer) error) error {
	if err := writeTo(r.ctx, r.tempFile, write); err != nil {
		return err
	}
	return r.tempFile.Sync()
}

// copyBuffer is the size of the buffer for small writes, in bytes.
const copyBuffer = 256 << 10

// writeTo calls write with a buffered writer on to, which fails once ctx has ended.
func writeTo(ctx context.Context, to io.Writer, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(&cancelableWriter{ctx: ctx, to: to}, copyBuffer)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// cancelableWriter stops at the end of ctx, between two writes. For a large file it
// starts the transfer to the disk while the rest is still being written, which
// shortens the final sync.
type cancelableWriter struct {
	ctx  context.Context
	to   io.Writer
	done int64
}

// maxWriteBytes is the number of bytes written between two checks of the context.
const maxWriteBytes = 4 << 20

// Write writes p piece by piece, and returns the context's error between two pieces.
func (s *cancelableWriter) Write(p []byte) (n int, err error) {
	for {
		if err := s.ctx.Err(); err != nil {
			return n, err
		}
		piece := p[n:min(len(p), n+maxWriteBytes)]
		m, err := s.to.Write(piece)
		n += m
		if f, ok := s.to.(syscall.Conn); ok && m == maxWriteBytes {
			startWriteback(f, s.done, int64(m))
		}
		s.done += int64(m)
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// publish gives the new file the name of the old one, if the old one is still the
// expected version.
func (r *replacement) publish() error {
	if err := r.checkBeforePublish(); err != nil {
		return err
	}
	if err := r.tempFile.publishOver(r.base); err != nil {
		return err
	}
	if r.old.Nlink > 1 {
		r.done.OtherNames = r.old.Nlink - 1
	}
	return r.syncAndRecord(r.tempFile.File)
}

// checkBeforePublish repeats the checks immediately before the rename: the
// directory was not moved, the file is not protected by now, and it is still
// the version to replace. It returns CONFLICT or STALE, or the error of ctx.
func (r *replacement) checkBeforePublish() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.checkParentInPlace(); err != nil {
		return err
	}
	if err := r.recheckRepositoryWrite(); err != nil {
		return err
	}
	now, err := r.currentStat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errGone(r.name)
	case err != nil:
		return err
	case !isSameVersion(now, *r.old):
		return errStale(r.name)
	}
	return nil
}

// checkParentInPlace returns an error if the open directory was moved, possibly out of
// the root.
func (r *replacement) checkParentInPlace() error {
	h, closeDir := r.fs.reopenDir(r.root, r.real)
	if h == nil {
		return errChanged
	}
	defer closeDir()
	if !r.dir.isSameDir(h) {
		return errChanged
	}
	return nil
}

// syncAndRecord syncs the directory, so that the new name survives a power
// failure, and records f, the written file, in r.done. It returns nil: the
// content is written even if the sync fails, and r.done.Unsynced has that error.
func (r *replacement) syncAndRecord(f *os.File) error {
	r.done.Unsynced = r.dir.sync()
	for _, p := range r.createdParents {
		if p.ours {
			r.done.Parents = append(r.done.Parents, p.path)
		}
		r.done.Unsynced = errors.Join(r.done.Unsynced, p.in.sync())
	}
	info, err := f.Stat()
	if err != nil {
		return nil // the content is written nevertheless
	}
	r.done.Stat = statOfInfo(info)
	return nil
}

// errGone returns the STALE error for a file that another program removed or
// renamed.
func errGone(name string) error {
	return toolerr.New(toolerr.Stale, "%s was deleted or renamed by another program, %s: check the current state", pathname.Escape(name), unchanged)
}

// errStale returns the STALE error for a file that another program changed.
func errStale(name string) error {
	return toolerr.New(toolerr.Stale, "%s was changed by another program, %s: view it again and repeat the change on the current content", pathname.Escape(name), unchanged)
}

// errExists returns the EXISTS error for a file that the caller wanted to
// create and that exists already.
func errExists(name string) error {
	return toolerr.New(toolerr.Exists, "%s already exists, %s: view it, then change it", pathname.Escape(name), unchanged)
}
