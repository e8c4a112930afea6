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

// ReplaceOptions says what a Replace relies on and may do.
type ReplaceOptions struct {
	// Expect is the version that the new content was made from, as the Stat
	// of what Target.Open opened. Anything else at the name, or nothing, is
	// STALE. nil: whatever is there when Replace is called.
	Expect *Stat
	// Create demands that the file does not exist: EXISTS otherwise, also when
	// the file appears at the last moment.
	Create bool
	// MakeParents makes missing parent directories: NOT_FOUND without.
	MakeParents bool
	// Executable gives a new file the execute bits that the umask leaves.
	Executable bool
	// KeepHardlinks writes a file with several names in place, so that all
	// of them have the new content. Otherwise this name gets a new inode.
	KeepHardlinks bool
}

// Written tells what a Replace has done.
type Written struct {
	Created bool
	// InPlace is empty for a file that was replaced in one step. Else it is
	// why the file's own bytes had to be overwritten (to follow "written in
	// place, since "): a crash in that moment can have left a mixture.
	InPlace string
	// OtherNames is the number of other hard links that still have the old content.
	OtherNames uint64
	// Parents are the directories that were made, absolute, outermost first.
	Parents []string
	// Dropped lists the attributes that the file lost: the setuid and setgid bits
	// and file capabilities, which never survive a write.
	Dropped []string
	// Stat is of the file as it was written.
	Stat Stat
	// Unsynced is set where the disk did not confirm that the new name is
	// durable: the content is there, but might not survive a power cut.
	Unsynced error
}

// Bytes is content for Replace that is in memory.
func Bytes(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// Replace gives the file new content, all or nothing: at any moment, also
// after a crash, the name leads to the old file or to the complete new one.
// write is called once, and may stream. Mode, owner, access list and extended
// attributes are kept.
//
// The new file is written next to the old one, synced, and renamed. If that is not
// possible (a directory that is not writable, an owner that cannot be kept,
// a file that is a mount point), the content is written to the file itself,
// after the room for it was reserved, and put back if that fails: see
// Written.InPlace.
//
// On an error the file is unchanged. NO_SPACE, READ_ONLY, PERMISSION_DENIED and
// TOO_LARGE name the obstacle; STALE, EXISTS and CONFLICT mean that another
// program changed the file first. Cancelling ctx stops it up to the last step.
func (t *Target) Replace(ctx context.Context, write func(io.Writer) error, o ReplaceOptions) (*Written, error) {
	defer runtime.KeepAlive(t.fs)
	err := t.checkGit()
	if err == nil {
		write, err = t.checkConfigWrite(ctx, write)
	}
	if err != nil {
		return nil, t.fs.explainWriteError(t.name, err)
	}
	r := &replacement{Target: t, ctx: ctx, options: o, done: &Written{}}
	err = r.run(write)
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

// replacement is a Replace under way.
type replacement struct {
	*Target
	ctx     context.Context
	options ReplaceOptions
	done    *Written

	old      *Stat     // what is to be replaced; nil for a new file
	tempFile *tempFile // where the new content is written
	made     []createdParent
}

func (r *replacement) close() {
	for _, p := range r.made {
		p.in.close()
	}
}

func (r *replacement) run(write func(io.Writer) error) error {
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
	if r.options.KeepHardlinks && r.old.Nlink > 1 {
		return r.writeInPlace(write, "it has several hard links, kept by --keep-hardlinks")
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

// checkExpected records the version that Replace will replace. It fails if the caller
// expects another version.
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
	case r.options.Expect != nil && !sameVersion(now, *r.options.Expect):
		return errStale(r.name)
	}
	r.old = &now
	if err := r.dir.checkWritable(r.base); err != nil {
		return err
	}
	return nil
}

// sameVersion reports whether nothing was done to a file between two looks.
func sameVersion(a, b Stat) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.ChangeTime.Equal(b.ChangeTime)
}

// create makes a file that does not exist.
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
	if err := r.recheckGit(); err != nil {
		return err
	}
	if err := r.tempFile.publishNew(r.base); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return errExists(r.name)
		}
		return err
	}
	r.done.Created = true
	return r.finish(r.tempFile.File)
}

// createWithOldAttributes makes the new file with the attributes of the old one. Where it
// cannot have them, why says so and there may be no temporary file.
func (r *replacement) createWithOldAttributes() (why string, err error) {
	old, _, err := r.dir.open(r.base, os.O_RDONLY)
	if errors.Is(err, fs.ErrPermission) {
		old, err = r.dir.openReadWithoutAccessTime(r.base)
	}
	if err != nil {
		return "", err
	}
	defer old.Close() // Windows does not replace a file that is open
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

// lostPrivileges names what of a file no writing keeps: what gives rights to who
// runs it.
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

// writeContent writes the new content to the temporary file, down to the disk.
func (r *replacement) writeContent(write func(io.Writer) error) error {
	if err := writeTo(r.ctx, r.tempFile, write); err != nil {
		return err
	}
	return r.tempFile.Sync()
}

// copyBuffer gathers small writes.
const copyBuffer = 256 << 10

func writeTo(ctx context.Context, to io.Writer, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(&cancelableWriter{ctx: ctx, to: to}, copyBuffer)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// cancelableWriter is a writer that a context stops between two pieces. What was
// written of a large file is on its way to the disk while the rest is: the
// sync at the end then has little to wait for.
type cancelableWriter struct {
	ctx  context.Context
	to   io.Writer
	done int64
}

// maxWriteBytes is the number of bytes written between two checks of the context.
const maxWriteBytes = 4 << 20

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

// publish puts the new file in the old one's place, if that is still what
// was expected.
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
	return r.finish(r.tempFile.File)
}

// checkBeforePublish is the last look before the point of no return.
func (r *replacement) checkBeforePublish() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.checkParentInPlace(); err != nil {
		return err
	}
	if err := r.recheckGit(); err != nil {
		return err
	}
	now, err := r.currentStat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errGone(r.name)
	case err != nil:
		return err
	case !sameVersion(now, *r.old):
		return errStale(r.name)
	}
	return nil
}

// checkParentInPlace makes sure that the directory held was not moved away, which
// could be to outside the root.
func (r *replacement) checkParentInPlace() error {
	h, closeDir := r.fs.reopenDir(r.home, r.real)
	if h == nil {
		return errChanged
	}
	defer closeDir()
	if !r.dir.isSameDir(h) {
		return errChanged
	}
	return nil
}

// finish syncs the directory and describes the file that is at the name.
func (r *replacement) finish(f *os.File) error {
	r.done.Unsynced = r.dir.sync()
	for _, p := range r.made {
		if p.ours {
			r.done.Parents = append(r.done.Parents, p.path)
		}
		r.done.Unsynced = errors.Join(r.done.Unsynced, p.in.sync())
	}
	info, err := f.Stat()
	if err != nil {
		return nil // it is written all the same
	}
	r.done.Stat = statOfInfo(info)
	return nil
}

func errGone(name string) error {
	return toolerr.New(toolerr.Stale, "%s was deleted or renamed by another program, %s: check the current state", pathname.Escape(name), unchanged)
}

func errStale(name string) error {
	return toolerr.New(toolerr.Stale, "%s was changed by another program, %s: view it again and repeat the change on the current content", pathname.Escape(name), unchanged)
}

func errExists(name string) error {
	return toolerr.New(toolerr.Exists, "%s already exists, %s: view it, then change it", pathname.Escape(name), unchanged)
}
