package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// reasonNotReplaceable returns the reason in words why a file must be written
// in place after this error of a replacement; "" for any other error and for
// nil.
func reasonNotReplaceable(err error) string {
	switch {
	case errors.Is(err, syscall.EBUSY):
		return "it is a mount point"
	case errors.Is(err, fs.ErrPermission):
		return "its directory does not allow replacing it"
	}
	return ""
}

// writeInPlace writes the new content to the file itself. The content comes
// from the temporary file, or from write if there is no temporary file. why is
// the reason why the file cannot be replaced, for Written.InPlace and errors.
// It returns PERMISSION_DENIED for a file with several hard links, unless
// KeepHardlinks is set.
func (r *replacement) writeInPlace(write func(io.Writer) error, why string) error {
	if r.old.Nlink > 1 && !r.options.KeepHardlinks {
		return toolerr.New(toolerr.PermissionDenied, "%s cannot be replaced because %s, and writing in place would change all of its %d hard links, %s; the user can allow that with --keep-hardlinks",
			pathname.Escape(r.name), why, r.old.Nlink, unchanged)
	}
	var source io.ReaderAt
	var size int64
	if write != nil {
		var content bytes.Buffer
		if err := writeTo(r.ctx, &content, write); err != nil {
			return err
		}
		source, size = bytes.NewReader(content.Bytes()), int64(content.Len())
	} else {
		info, err := r.tempFile.Stat()
		if err != nil {
			return err
		}
		source, size = r.tempFile.File, info.Size()
	}
	if err := r.checkBeforePublish(); err != nil {
		return err
	}
	f, st, err := r.dir.open(r.base, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	if !isSameVersion(st, *r.old) {
		return errStale(r.name)
	}
	r.done.Dropped = lostPrivileges(f, st)
	special := st.Mode & (fs.ModeSetuid | fs.ModeSetgid)
	if special != 0 {
		_ = f.Chmod(st.Mode &^ special) // the kernel does this, but not for root, and only at the first byte
	}
	if err := overwrite(f, st.Size, source, size); err != nil {
		if special != 0 {
			_ = f.Chmod(st.Mode)
		}
		return err
	}
	r.done.InPlace = why
	r.done.OtherNames = 0
	return r.syncAndRecord(f)
}

// overwrite replaces the content of f by that of source. To lose as little as
// possible, it reserves the space before it changes anything, does not write bytes
// that are equal already, and writes the old bytes back if writing fails.
func overwrite(f *os.File, oldSize int64, source io.ReaderAt, size int64) error {
	same, err := commonPrefixLen(f, oldSize, source, size)
	if err != nil {
		return err
	}
	before := make([]byte, oldSize-same)
	if _, err := io.ReadFull(io.NewSectionReader(f, same, oldSize-same), before); err != nil {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	if err := reserveSpace(f, oldSize, size-oldSize); err != nil {
		return errors.Join(err, f.Truncate(oldSize))
	}
	err = rewriteTail(f, same, source, size)
	if err == nil {
		return nil
	}
	_, err2 := f.WriteAt(before, same)
	if err3 := errors.Join(err2, f.Truncate(oldSize), f.Sync()); err3 != nil {
		return toolerr.New(toolerr.CodeOf(err), "writing in place failed (%w) and restoring the old content failed too (%w): the file now mixes old and new content; restore it with undo", withoutOpAndPath(err), withoutOpAndPath(err3))
	}
	return err
}

// rewriteTail replaces the content of f from offset from on by that of source, which has
// size bytes. It truncates f to size and syncs it to disk.
func rewriteTail(f *os.File, from int64, source io.ReaderAt, size int64) error {
	if _, err := io.Copy(io.NewOffsetWriter(f, from), io.NewSectionReader(source, from, size-from)); err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}

// commonPrefixLen returns the number of equal bytes at the beginning of f,
// which has oldSize bytes, and source, which has size bytes.
func commonPrefixLen(f io.ReaderAt, oldSize int64, source io.ReaderAt, size int64) (int64, error) {
	a, b := make([]byte, copyBuffer), make([]byte, copyBuffer)
	limit := min(oldSize, size)
	for at := int64(0); at < limit; {
		n := min(limit-at, copyBuffer)
		if _, err := io.ReadFull(io.NewSectionReader(f, at, n), a[:n]); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(io.NewSectionReader(source, at, n), b[:n]); err != nil {
			return 0, err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			for i := range n {
				if a[i] != b[i] {
					return at + i, nil
				}
			}
		}
		at += n
	}
	return limit, nil
}
