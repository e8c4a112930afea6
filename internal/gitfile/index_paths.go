package gitfile

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// EscapingIndexPath returns the first path of a git index that leads into a
// repository's own directory or out of the worktree, or "". git restore and
// git checkout PATH write the files of an index without looking at their
// paths, so such an entry plants a hook. ok is false for an index whose
// entries are cut off, that is of an unknown version, or of which git with
// several threads would read other entries than git with one.
//
// It reads versions 2 to 4 with SHA-1 and SHA-256 names (gitformat-index(5)).
// The entries of a split index are in its shared file, which is a separate index.
// Like git it accepts anything behind the entries.
func EscapingIndexPath(index []byte) (path string, ok bool) {
	for _, hash := range []int{20, 32} {
		found, whole := escapingIndexPath(index, hash)
		if ok = ok || whole; whole && found != "" {
			return found, true
		}
	}
	return "", ok
}

// escapingIndexPath is EscapingIndexPath, with the same results, for an index whose
// object names and checksum have hash bytes: 20 for SHA-1, 32 for SHA-256.
func escapingIndexPath(index []byte, hash int) (found string, ok bool) {
	const header, stat = 12, 40
	if len(index) < header+hash || string(index[:4]) != "DIRC" {
		return "", false
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return "", false
	}
	end, at := len(index)-hash, header
	var path []byte
	var starts map[uint32]bool
	if bytes.Contains(index, endOfEntries) {
		starts = map[uint32]bool{}
	}
	for ; count > 0; count-- {
		start := at
		if starts != nil {
			starts[uint32(start)] = true
		}
		if at += stat + hash + 2; at > end {
			return found, false
		}
		if version >= 3 && index[at-2]&0x40 != 0 { // extended flags
			at += 2
		}
		kept := 0
		if version == 4 {
			remove, size := readIndexVarint(index[min(at, end):end])
			if size == 0 || remove > len(path) {
				return found, false
			}
			at, kept = at+size, len(path)-remove
		}
		length := int(binary.BigEndian.Uint16(index[start+stat+hash:])&0xfff) - kept
		if length == 0xfff-kept { // too long to be said
			length = bytes.IndexByte(index[min(at, end):end], 0)
		}
		if length < 0 || at+length > end {
			return found, false
		}
		path = append(path[:kept], index[at:at+length]...)
		if at += length + 1; version < 4 {
			at = start + (at-start+7)/8*8
		}
		if found == "" && EscapesWorkTree(string(path)) {
			found = string(path)
		}
	}
	return found, starts == nil || isSameForThreads(index[:end], min(at, end), starts)
}

// endOfEntries is the name of the index extension that tells git where the
// entries end and the other extensions begin.
var endOfEntries = []byte("EOIE")

// isSameForThreads reports whether git's threads begin to read at entries: an
// index may have a table of offsets for them (the extension IEOT), which git
// finds through the extension EOIE at the end. at is the end of the entries.
func isSameForThreads(index []byte, at int, starts map[uint32]bool) bool {
	if !bytes.Contains(index[at:], endOfEntries) {
		return true
	}
	for len(index)-at >= 8 { // extensions: a name, a size and so many bytes
		name, size := string(index[at:at+4]), int64(binary.BigEndian.Uint32(index[at+4:]))
		if size > int64(len(index)-at-8) {
			return false
		}
		content := index[at+8 : at+8+int(size)]
		at += 8 + int(size)
		if name != "IEOT" {
			continue
		}
		if len(content)%8 != 4 { // a version, and pairs of an offset and a count
			return false
		}
		for pair := content[4:]; len(pair) > 0; pair = pair[8:] {
			if !starts[binary.BigEndian.Uint32(pair)] {
				return false
			}
		}
	}
	return at == len(index)
}

// readIndexVarint reads a number in the encoding that git uses for offsets: each
// further byte adds one. size is the number of bytes read, 0 if data ends inside the
// number.
func readIndexVarint(data []byte) (n, size int) {
	for i, b := range data {
		if i > 4 {
			break
		}
		if i > 0 {
			n++
		}
		n = n<<7 | int(b&0x7f)
		if b&0x80 == 0 {
			return n, i + 1
		}
	}
	return 0, 0
}

// EscapesWorkTree reports whether git must not write a path, relative to the top of a
// work tree: it leads out of the work tree, or into a repository's own directory, by
// any name that file systems take for .git.
func EscapesWorkTree(path string) bool {
	return strings.HasPrefix(path, "/") || slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		name := strings.TrimRight(pathname.Fold(part), ". ")
		return part == ".." || part == "." || pathname.EqualFold(name, ".git") || pathname.EqualFold(name, "git~1")
	})
}
