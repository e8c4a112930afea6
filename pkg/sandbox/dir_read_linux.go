package sandbox

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"golang.org/x/sys/unix"
)

// rawBufferBytes is the buffer size of one getdents call, enough for about a thousand
// entries.
const rawBufferBytes = 32 << 10

// DirReader reads directories and reuses its buffers from one to the next. Only
// one goroutine may use it at a time.
type DirReader struct {
	raw   []byte
	names []byte
	ends  []int32
}

// Read appends the entries after the last one read from d to buf, unsorted, without
// "." and "..", each name after prefix. With a prefix "dir/" the names are paths that
// share one allocation. If limit > 0, it stops after limit entries or 1 MiB of names;
// done is false if there may be more entries.
func (r *DirReader) Read(d *Dir, prefix string, buf []DirEntry, limit int) (entries []DirEntry, done bool, err error) {
	if r.raw == nil {
		r.raw = make([]byte, rawBufferBytes)
	}
	first := len(buf)
	r.names, r.ends = r.names[:0], r.ends[:0]
	for !done && err == nil && !r.isFull(limit) {
		var n int
		n, err = retryInterrupted(func() (int, error) { return unix.Getdents(int(d.fd.Load()), r.raw) })
		if err != nil {
			err = &fs.PathError{Op: "read", Path: d.path, Err: err}
			break
		}
		if n <= 0 {
			done = true
			break
		}
		buf, err = r.parse(d, r.raw[:n], prefix, buf, limit)
	}
	all := string(r.names)
	start := int32(0)
	for i, end := range r.ends {
		e := &buf[first+i]
		e.Name = all[start:end]
		e.MaybeSecret = secret.MaybeEntry(e.Name[len(prefix):]) || d.isLinkedName(e.Name[len(prefix):])
		start = end
	}
	return buf, done, err
}

// maxNames bounds the bytes of names that a Read with a limit returns. The bound
// matters in deep directories, whose prefix is long.
const maxNames = 1 << 20

// isFull reports whether limit entries, or maxNames bytes of names, were read. limit 0
// means no limit.
func (r *DirReader) isFull(limit int) bool {
	return limit > 0 && (len(r.ends) >= limit || len(r.names) >= maxNames)
}

// parse appends the entries of one getdents answer to buf. If the limit is reached, it
// sets the directory's position after the last appended entry.
func (r *DirReader) parse(d *Dir, raw []byte, prefix string, buf []DirEntry, limit int) ([]DirEntry, error) {
	const offOffset, lenOffset, typeOffset, nameOffset = 8, 16, 18, 19
	for len(raw) >= nameOffset {
		size := int(binary.NativeEndian.Uint16(raw[lenOffset:]))
		if size < nameOffset || size > len(raw) {
			return buf, &fs.PathError{Op: "read", Path: d.path, Err: errors.New("malformed directory entry")}
		}
		record := raw[:size]
		raw = raw[size:]
		name := record[nameOffset:]
		name = name[:lengthToNUL(name)]
		if binary.NativeEndian.Uint64(record) == 0 || string(name) == "." || string(name) == ".." {
			continue
		}
		r.names = append(append(r.names, prefix...), name...)
		r.ends = append(r.ends, int32(len(r.names)))
		buf = append(buf, DirEntry{Type: fileTypeOf(record[typeOffset])})
		if len(raw) > 0 && r.isFull(limit) {
			return buf, d.seek(int64(binary.NativeEndian.Uint64(record[offOffset:])))
		}
	}
	return buf, nil
}

// lengthToNUL returns the number of bytes before the first NUL; all of them
// without one.
func lengthToNUL(name []byte) int {
	for i, c := range name {
		if c == 0 {
			return i
		}
	}
	return len(name)
}

// fileTypeOf converts the d_type of a directory entry (getdents(2)) to type
// bits; TypeUnknown if the file system does not report the type.
func fileTypeOf(raw byte) fs.FileMode {
	switch raw {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	return TypeUnknown
}
