package writeguard

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// keptBytes bounds the files whose content is stored. A change of a larger
// file is only detected by its size and times.
const keptBytes = 16 << 20

// item is the recorded state of a watched file.
type item struct {
	Spot    kind
	Repo    string
	Mode    fs.FileMode
	Size    int64
	Changed time.Time
	Node    [2]uint64 // device and inode
	Links   uint64    // names of the file
	Hash    [sha256.Size]byte
	Content []byte // of the file, or the target of a link
	Runs    []string
}

// stampOf returns a file's item without the content.
func stampOf(info os.FileInfo, at spot) item {
	it := item{Spot: at.kind, Repo: at.repo, Mode: info.Mode(), Size: info.Size(), Changed: fileinfo.ChangeTime(info)}
	it.Node, it.Links = nodeOf(info), fileinfo.Links(info)
	return it
}

// sameStamp reports whether a file is unwritten since was recorded: node,
// mode, size and time of change are equal.
func (it *item) sameStamp(now *item) bool {
	return it.Node == now.Node && it.Mode == now.Mode && it.Size == now.Size && it.Changed.Equal(now.Changed)
}

// same reports whether a file has the recorded content, type and execute bits.
func (it *item) same(now *item) bool {
	return it.Mode.Type() == now.Mode.Type() && it.Mode.Perm()&0o111 == now.Mode.Perm()&0o111 && it.Size == now.Size && it.Hash == now.Hash &&
		(it.Size <= keptBytes || it.sameStamp(now))
}

// readItem reads a file. It does not block on FIFOs or devices, and follows no
// link.
func readItem(path string, at spot, info os.FileInfo) item {
	it := stampOf(info, at)
	switch {
	case it.Mode&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		it.Content = []byte(target)
	case it.Mode.IsRegular() && it.Size <= keptBytes:
		it.Content, _ = readRegular(path, keptBytes)
		if it.Content == nil {
			it.Content = []byte{}
		}
	}
	it.Hash = sha256.Sum256(it.Content)
	switch at.kind {
	case settingsKind:
		it.Runs, _ = gitfile.Runs(it.Content)
	case stepsKind:
		it.Runs = gitfile.Steps(it.Content)
	}
	return it
}

// readRegular reads a regular file. It returns an error if the file is larger
// than most bytes or not regular.
func readRegular(path string, most int64) ([]byte, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, flags|noFollow, 0)
	if errors.Is(err, fs.ErrPermission) { // a command may have removed its permissions
		if l, err2 := lift(filepath.Dir(path), filepath.Base(path), 0o400); err2 == nil {
			f, err = os.OpenFile(l.path(), flags, 0)
			l.drop()
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = syscall.EFBIG
	}
	return text, err
}
