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
	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// maxStoredBytes bounds the files whose content is stored in the baseline. A
// change of a larger file is only detected by its size and times.
const maxStoredBytes = 16 << 20

// fileState is the state of a watched file at one moment. Baselines are stored
// with encoding/gob: a renamed field would not be read from older files.
type fileState struct {
	Spot    fileKind // what the file is
	Repo    string   // as watchedFile.repo
	Mode    fs.FileMode
	Size    int64
	Changed time.Time // of the inode (ctime)
	Node    [2]uint64 // device and inode
	Links   uint64    // number of hard links
	Hash    [sha256.Size]byte
	Content []byte   // of a file up to maxStoredBytes, or the target of a link; nil for judgedSettingsKind
	Runs    []string // settings of git (KEY=VALUE), steps of a rebase or lines that run a program
}

// stateWithoutContent returns the part of a file's state that info holds. Hash,
// Content and Runs are empty.
func stateWithoutContent(info os.FileInfo, at watchedFile) fileState {
	it := fileState{Spot: at.kind, Repo: at.repo, Mode: info.Mode(), Size: info.Size(), Changed: fileinfo.ChangeTime(info)}
	it.Node, it.Links = deviceAndInode(info), fileinfo.Links(info)
	return it
}

// hasSameMetadata reports whether node, mode, size and time of change of both
// states are equal, which means that the file was not written in between.
func (it *fileState) hasSameMetadata(now *fileState) bool {
	return it.Node == now.Node && it.Mode == now.Mode && it.Size == now.Size && it.Changed.Equal(now.Changed)
}

// sameContentTypeAndExec reports whether content, type and execute bits of both
// states are equal. The content of files above maxStoredBytes is taken as equal
// if their metadata is.
func (it *fileState) sameContentTypeAndExec(now *fileState) bool {
	return it.Mode.Type() == now.Mode.Type() && it.Mode.Perm()&0o111 == now.Mode.Perm()&0o111 && it.Size == now.Size && it.Hash == now.Hash &&
		(it.Size <= maxStoredBytes || it.hasSameMetadata(now))
}

// readState reads the state of the file at path, which info describes. It does
// not block on FIFOs or devices, and follows no link. If the file cannot be
// read, the content is empty.
func readState(path string, at watchedFile, info os.FileInfo) fileState {
	it := stateWithoutContent(info, at)
	switch {
	case it.Mode&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		it.Content = []byte(target)
	case it.Mode.IsRegular() && it.Size <= maxStoredBytes:
		it.Content, _ = readRegularFile(path, maxStoredBytes)
		if it.Content == nil {
			it.Content = []byte{}
		}
	}
	it.Hash = sha256.Sum256(it.Content)
	switch at.kind {
	case gitSettingsKind:
		it.Runs, _ = gitfile.DangerousSettings(it.Content)
	case rebaseStepsKind:
		it.Runs = gitfile.ExecSteps(it.Content)
	case judgedSettingsKind:
		it.Runs, it.Content = projectfile.LinesThatRun(filepath.Base(path), it.Content), nil
	}
	return it
}

// readRegularFile reads a regular file, even if a command has removed its
// owner's permission to read. It follows no link at the end of path. It returns
// EFBIG and the first maxBytes+1 bytes if the file is larger, fs.ErrInvalid if
// it is not regular.
func readRegularFile(path string, maxBytes int64) ([]byte, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, flags|openNoFollow, 0)
	if errors.Is(err, fs.ErrPermission) { // a command may have removed its permissions
		if l, err2 := addMode(filepath.Dir(path), filepath.Base(path), 0o400); err2 == nil {
			f, err = os.OpenFile(l.procPath(), flags, 0)
			l.restore()
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && int64(len(text)) > maxBytes {
		err = syscall.EFBIG
	}
	return text, err
}
