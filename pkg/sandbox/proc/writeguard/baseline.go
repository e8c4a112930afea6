package writeguard

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// baseline is the recorded state of a root as the user left it; the state
// after a command is compared with it. All commands of all servers with the
// same state directory share the baseline of a root.
type baseline struct {
	Items    map[string]item // by their names in the root
	Repos    map[string]bool
	Tops     map[string]bool
	Seen     directories
	Included []string                  // files with settings that git is told to read, by their names in the root
	HookDirs []string                  // directories that core.hooksPath names, or to which links in place of project settings lead
	Programs []string                  // files that other settings of git name, and those to which such links lead
	Kept     map[string][2]uint64      // by paths that are mounted read-only at L2, see holderOf
	Made     map[string]madeRepository // by names in the root
	Steps    map[string]heldSteps      // by names in the root
	Dirs     map[string][2]uint64      // nodes of the items' directories; nil in a file of an older version
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

// adopt makes the current state of a root the baseline, except for the files
// that commands may have changed according to d. It reports whether the
// baseline changed.
func (b *baseline) adopt(root string, s *survey, trustTimes bool, d *doubts) (changed bool) {
	items := make(map[string]item, len(s.spots))
	for name, at := range s.spots {
		path := filepath.Join(root, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		now := stampOf(info, at)
		if was, ok := b.Items[name]; ok && trustTimes && was.sameStamp(&now) && was.Spot == at.kind && was.Repo == at.repo {
			items[name] = was
			continue
		}
		it := readItem(path, at, info)
		it, keep := d.pick(b, name, &it)
		was, ok := b.Items[name]
		changed = changed || keep && (!ok || !was.sameStamp(&it) || !was.same(&it))
		if keep {
			items[name] = it
		}
	}
	repos, tops := d.add(b, s, items)
	changed = changed || len(items) != len(b.Items) || !sameKeys(b.Repos, repos) || !sameKeys(b.Tops, tops)
	b.Items, b.Repos, b.Tops = items, repos, tops
	if d.none() { // the directories of a running command are not the user's
		changed = b.Seen.adopt(s.dirs) || changed
	}
	return changed
}

// movedSince reports whether a file that entered the baseline later than
// before has been changed again.
func (b *baseline) movedSince(root string, before *baseline) bool {
	for name, it := range b.Items {
		if was, ok := before.Items[name]; ok && was.sameStamp(&it) {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			return true
		}
		if now := stampOf(info, spot{}); !it.sameStamp(&now) {
			return true
		}
	}
	return false
}

func sameKeys(a, b map[string]bool) bool {
	for name := range a {
		if !b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

// isHooks reports whether a directory is the default hooks directory of a
// repository.
func isHooks(dir string) bool {
	return filepath.Base(dir) == "hooks" && isDotGit(filepath.Base(filepath.Dir(dir)))
}

// within reports whether name is dir or below it. Both are relative to the
// root.
func within(dir, name string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+string(filepath.Separator))
}

// load reads a file written by save.
func (b *baseline) load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var read baseline
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&read); err != nil {
		return err
	}
	*b = read
	return nil
}

func (b *baseline) save(path string) error {
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(b); err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, data.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
