package writeguard

import (
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// commandLocks show all servers of the machine, whatever their state directory,
// that a command runs in a root. It holds read locks on bytes of directories,
// which the kernel releases when the process ends. Nothing is written, and a
// confined command cannot take a write lock that would conflict.
//
//	the root                byte N: a command runs since N ns after 1970
//	directories above it    byte beneathFlag | H<<timeBits | M: a command runs
//	                        since M ms after 1970 in a root below this
//	                        directory; H is the dirHash of the root
//
// If one root contains the other, both servers check the directory of the
// upper root.
type commandLocks struct {
	root  string
	dirs  []*os.File    // the root, and the directories above it, by every path that leads to it
	infos []os.FileInfo // of dirs
	since int64         // start of the first running command, in nanoseconds since 1970; 0: none runs
}

const (
	// beneathFlag, hashBits and timeBits are the layout of a locked byte's
	// number, see commandLocks.
	beneathFlag = 1 << 62
	hashBits    = 20
	timeBits    = 42 // milliseconds until the year 2109
	// maxLocksRead bounds the locks read from one directory.
	maxLocksRead = 256
)

// openCommandLocks opens the root and the directories above it. Unreadable
// directories are skipped: no server of this user can have one as its root. The
// caller closes the result.
func openCommandLocks(root string) *commandLocks {
	p := &commandLocks{root: root}
	p.openDirs()
	return p
}

// openDirs opens p.root and the directories above it, by every path that leads
// to the root.
func (p *commandLocks) openDirs() {
	for _, path := range append([]string{p.root}, pathsThroughMounts(p.root)...) {
		for dir := path; ; dir = filepath.Dir(dir) {
			p.addDir(dir)
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
}

// addDir opens a directory and adds it to p.dirs, unless it is already open or
// cannot be opened.
func (p *commandLocks) addDir(dir string) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(dir, flags, 0)
	if err == unix.EACCES { // a command may have removed its permissions
		if l, err2 := addMode(dir, ".", 0o400); err2 == nil {
			fd, err = unix.Open(dir, flags, 0)
			l.restore()
		}
	}
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), dir)
	info, err := f.Stat()
	for _, known := range p.infos {
		if err == nil && os.SameFile(known, info) {
			err = os.ErrExist
		}
	}
	if err != nil {
		f.Close()
		return
	}
	p.dirs, p.infos = append(p.dirs, f), append(p.infos, info)
}

// close releases the locks of acquire and closes the directories.
func (p *commandLocks) close() {
	p.release()
	closeAll(p.dirs...)
	p.dirs, p.infos = nil, nil
}

// acquire takes the locks which show that a command runs, until release. It
// opens directories again that were moved or replaced.
func (p *commandLocks) acquire() {
	for i, f := range p.dirs {
		if now, err := os.Lstat(f.Name()); err != nil || !os.SameFile(now, p.infos[i]) { // moved or replaced
			p.close()
			p.openDirs()
			break
		}
	}
	p.since = fileTimeNow().UnixNano()
	info, err := os.Lstat(p.root)
	if err != nil {
		return
	}
	hash := dirHash(info)
	for _, f := range p.dirs {
		at := p.since
		if f.Name() != p.root {
			at = beneathFlag | int64(hash)<<timeBits | p.since/1e6
		}
		setByteLock(f, unix.F_RDLCK, at, 1)
	}
}

// fileTimeNow returns the time of the clock that the kernel uses for file
// times. It is up to one tick earlier than time.Now.
func fileTimeNow() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return time.Now()
	}
	return time.Unix(now.Unix())
}

// release releases the locks of acquire.
func (p *commandLocks) release() {
	if p.since == 0 {
		return
	}
	p.since = 0
	for _, f := range p.dirs {
		setByteLock(f, unix.F_UNLCK, 0, 0)
	}
}

// setByteLock takes (F_RDLCK) or releases (F_UNLCK) a lock on length bytes from
// start on; a length of 0 means up to the end. If the file system has no locks,
// servers with other state directories do not see each other.
func setByteLock(f *os.File, kind int16, start, length int64) {
	unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: start, Len: length}) //nolint:errcheck // see above
}

// commandsOfOthers lists the running commands of other servers, and of other guards of
// this process, whose roots overlap with this root.
func (p *commandLocks) commandsOfOthers() (list []runningCommand) {
	for _, f := range p.dirs {
		top := int64(beneathFlag)
		if f.Name() == p.root {
			top = math.MaxInt64
		}
		locks, complete := lockOffsets(f, 0, top, nil)
		for _, at := range locks {
			if at&beneathFlag == 0 {
				list = append(list, runningCommand{since: time.Unix(0, at)})
			} else {
				list = append(list, runningCommand{since: time.UnixMilli(at & (1<<timeBits - 1)), rootHash: uint32(at>>timeBits) & (1<<hashBits - 1), onlyInOneRoot: true})
			}
		}
		if !complete { // the oldest may be missing
			list = append(list, runningCommand{since: bootTime()})
		}
	}
	return list
}

// bootTime returns the time when the machine was started. No command is older.
// It returns the zero time if it is not known.
func bootTime() time.Time {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(up.Nano()))
}

// lockOffsets appends to found the first offset of each lock that other open files hold
// on f in [start, end). complete is false if it stopped at maxLocksRead. A file system
// without locks counts as having none.
func lockOffsets(f *os.File, start, end int64, found []int64) (all []int64, complete bool) {
	if start >= end {
		return found, true
	}
	if len(found) >= maxLocksRead {
		return found, false
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: end - start}
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l) != nil || l.Type == unix.F_UNLCK {
		return found, true
	}
	first, last := max(l.Start, start), end // a length of 0 extends to the end
	if l.Len > 0 {
		last = l.Start + l.Len
	}
	found, complete = lockOffsets(f, start, first, append(found, first))
	if complete {
		found, complete = lockOffsets(f, last, end, found)
	}
	return found, complete
}

// dirHash returns a hash of a directory's device and inode, of hashBits bits.
// Different directories may have the same hash.
func dirHash(info os.FileInfo) uint32 {
	h := fnv.New64a()
	for _, number := range deviceAndInode(info) {
		var b [8]byte
		for i := range b {
			b[i] = byte(number >> (8 * i))
		}
		h.Write(b[:]) //nolint:errcheck // never fails
	}
	return uint32(h.Sum64()) & (1<<hashBits - 1)
}

// pathsThroughMounts lists the paths to the directory root through other mounts, such as
// bind mounts; nil if the mounts cannot be read.
func pathsThroughMounts(root string) (paths []string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	info, err2 := os.Stat(root)
	if err != nil || err2 != nil {
		return nil
	}
	type mount struct{ device, from, at string }
	var mounts []mount
	var own mount
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		m := mount{fields[2], supervise.UnescapeMount(fields[3]), supervise.UnescapeMount(fields[4])}
		mounts = append(mounts, m)
		if supervise.IsBeneath(m.at, root) && len(m.at) >= len(own.at) {
			own = m
		}
	}
	rel, err := filepath.Rel(own.at, root)
	if err != nil {
		return nil
	}
	name := filepath.Join(own.from, rel)
	for _, m := range mounts {
		if m.device != own.device || !supervise.IsBeneath(m.from, name) {
			continue
		}
		rel, err := filepath.Rel(m.from, name)
		path := filepath.Join(m.at, rel)
		if now, err2 := os.Lstat(path); err == nil && err2 == nil && path != root && os.SameFile(now, info) {
			paths = append(paths, path)
		}
	}
	return paths
}
