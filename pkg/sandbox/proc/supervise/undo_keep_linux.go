package supervise

import (
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// keepContent keeps the content of a file in the undo record and returns its
// state. With willVanish, the file is about to be removed or replaced, so
// another hard link keeps it; otherwise a copy does. Held and Link are unset if
// the content is not kept.
func (r *recorder) keepContent(p *dirEntry, willVanish bool) UndoState {
	state := StateOf(&p.file)
	state.Target = readLinkTarget(p.dir, p.base, &p.file)
	if p.exists && state.Target == "" {
		state.Attributes = AttributesAt(p.dir, p.base)
	}
	if p.isDir() || r.stopped || !r.openRecord() {
		return state
	}
	if willVanish && r.keptBytes+state.Size <= UndoBytes {
		if state.Link = r.keepByLink(p); state.Link != "" {
			r.keptBytes += state.Size
			return state
		}
	}
	if p.file.Mode&unix.S_IFMT == unix.S_IFREG && state.Size <= UndoFileBytes && r.keptBytes+state.Size <= UndoBytes {
		state.Offset, state.Held = r.keepByCopy(p, state.Size)
	}
	return state
}

// keepByLink makes a hard link to a file in the record, if both are on the same
// mount of the server. It returns the name of the link, "" on an error. It
// uses the server's view of the root, which has no masks. So the link is only
// valid if the path leads, without a symbolic link, to the file that the
// command sees.
func (r *recorder) keepByLink(p *dirEntry) string {
	rel := "."
	if dir := filepath.Dir(p.path); dir != r.roots[p.root] {
		rel = strings.TrimPrefix(dir[len(r.roots[p.root]):], "/")
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	dir, err := unix.Openat2(r.serverRoots[p.root], rel, &how)
	if err != nil {
		return ""
	}
	defer unix.Close(dir)
	r.linkCount++
	name := "l" + strconv.Itoa(r.linkCount)
	if unix.Linkat(dir, p.base, r.dir, name, 0) != nil {
		return ""
	}
	var file unix.Stat_t
	if unix.Fstatat(r.dir, name, &file, unix.AT_SYMLINK_NOFOLLOW) != nil || idOf(&file) != idOf(&p.file) {
		unix.Unlinkat(r.dir, name, 0)
		return ""
	}
	if file.Mode&unix.S_IFMT == unix.S_IFREG {
		r.links[idOf(&file)] = append(r.links[idOf(&file)], name)
	}
	return name
}

// separateLinks replaces the record's hard links to a file by links to one copy: the
// file is about to be changed in a way that no other record reverts. If the file
// cannot be copied, the links stay.
func (r *recorder) separateLinks(id fileID) {
	names := r.links[id]
	if len(names) == 0 {
		return
	}
	delete(r.links, id)
	from, err := unix.Openat(r.dir, names[0], unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(from)
	var file unix.Stat_t
	if unix.Fstat(from, &file) != nil {
		return
	}
	const unfinished = "copy.new"
	to, err := unix.Openat(r.dir, unfinished, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	copied := copyRange(from, to, 0, file.Size)
	if unix.Close(to) != nil || !copied || unix.Renameat(r.dir, unfinished, r.dir, names[0]) != nil {
		unix.Unlinkat(r.dir, unfinished, 0)
		return
	}
	for _, name := range names[1:] {
		if unix.Linkat(r.dir, names[0], r.dir, unfinished, 0) == nil {
			unix.Renameat(r.dir, unfinished, r.dir, name)
		}
	}
}

// keepByCopy copies the size bytes of a file's content to r.data. If the file system
// supports it, the two files then share blocks. It returns the offset of the copy there.
// held is false if the file cannot be copied.
func (r *recorder) keepByCopy(p *dirEntry, size int64) (offset int64, held bool) {
	from, err := unix.Openat(p.dir, p.base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(from)
	var file unix.Stat_t
	if unix.Fstat(from, &file) != nil || idOf(&file) != idOf(&p.file) {
		return 0, false
	}
	const block = 4 << 10 // file systems share only whole blocks
	offset = (r.dataEnd + block - 1) / block * block
	if !copyRange(from, r.data, offset, size) {
		return 0, false
	}
	r.dataEnd = offset + size
	r.keptBytes += size
	return offset, true
}

// copyRange copies the first size bytes of from to offset in to. It returns
// false on an error.
func copyRange(from, to int, offset, size int64) bool {
	done := shareRange(from, to, offset, size)
	buf := make([]byte, max(min(size-done, 256<<10), 1))
	for done < size {
		n, err := unix.Pread(from, buf, done)
		if err != nil || n == 0 {
			return false
		}
		if m, err := unix.Pwrite(to, buf[:n], offset+done); err != nil || m < n {
			return false
		}
		done += int64(n)
	}
	return true
}

// shareRange makes the kernel copy the first size bytes of from to offset in
// to, which shares the blocks on btrfs and XFS. It returns the number of bytes
// copied, 0 if the kernel cannot copy.
func shareRange(from, to int, offset, size int64) (done int64) {
	for done < size {
		in, out := done, offset+done
		n, err := unix.CopyFileRange(from, &in, to, &out, int(size-done), 0)
		if err != nil || n <= 0 {
			break
		}
		done += int64(n)
	}
	return done
}

// hashFile returns HashOf of the file at path, without following a symbolic link;
// "" if the file cannot be read or is larger than UndoFileBytes.
func hashFile(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // only read
	return HashOf(f)
}

// HashOf returns the CRC-64 of a content, "" if the content is larger than
// UndoFileBytes or cannot be read. It detects accidental changes only, not
// attacks.
func HashOf(r io.Reader) string {
	h := crc64.New(crc64.MakeTable(crc64.ECMA))
	if n, err := io.Copy(h, io.LimitReader(r, UndoFileBytes+1)); err != nil || n > UndoFileBytes {
		return ""
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
