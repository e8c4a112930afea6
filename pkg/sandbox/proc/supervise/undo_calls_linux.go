package supervise

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// undoEffect is the effect of a system call on files.
type undoEffect int

const (
	// effectOpen opens a file, which may create, truncate or write it, by the
	// flags of open(2).
	effectOpen undoEffect = iota + 1
	// effectCreate makes an entry that must not exist.
	effectCreate
	// effectRemove removes an entry; a directory only with AT_REMOVEDIR.
	effectRemove
	// effectRemoveDir removes an empty directory.
	effectRemoveDir
	// effectRename renames or exchanges entries.
	effectRename
	// effectLink makes another hard link.
	effectLink
	// effectTruncate changes the size of a file by its path.
	effectTruncate
	// effectAdjust changes mode, owner or times by a path.
	effectAdjust
	effectAdjustOpen // through a descriptor
	// effectBind makes the file of a unix socket.
	effectBind
)

// noArg means that the call does not have the argument.
const noArg = -1

// undoCall describes a call that changes files: its effect, and the indexes of
// the arguments that name the changed file. path starts at the descriptor dir.
// toDir and to are the same for the new name.
type undoCall struct {
	number         uint32
	effect         undoEffect
	dir, path      int
	toDir, to      int
	flags          int
	doesNotFollow  bool
	createsForSure bool // creat
}

// writeOpenFlags holds the flags of open(2) that allow a call to change a file;
// any one is enough.
const writeOpenFlags = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// notifyOrAllow completes the program for a call. If an undo record is kept and the
// call may change files, or if the command is watched, the supervisor receives the
// call; otherwise the call is allowed.
func (p *program) notifyOrAllow(f filterOptions, number uint32) {
	for _, c := range undoCalls {
		if !f.undo && !f.watch || c.number != number {
			continue
		}
		if c.effect == effectOpen && c.flags >= 0 && !f.watch {
			p.loadArg(uint32(c.flags))
			p.ifTrue(unix.BPF_JSET, writeOpenFlags, func(p *program) { p.returnAction(unix.SECCOMP_RET_USER_NOTIF) })
			p.allow()
			return
		}
		p.returnAction(unix.SECCOMP_RET_USER_NOTIF)
		return
	}
	p.allow()
}

// addUndoRules passes the calls of undoCalls to the supervisor, except those
// that another part of the filter handles.
func (p *program) addUndoRules(f filterOptions) {
	if !f.undo && !f.watch {
		return
	}
calls:
	for _, c := range undoCalls {
		for _, m := range modeCalls {
			if m.number == c.number {
				continue calls
			}
		}
		p.onCall(c.number, func(p *program) { p.notifyOrAllow(f, c.number) })
	}
}

// dirEntry is a directory entry named by a call.
type dirEntry struct {
	dir    int // descriptor of the supervisor, to be closed
	base   string
	path   string // absolute, links of the directory resolved
	root   int    // index of the root; -1: in no recorded root
	file   unix.Stat_t
	exists bool
	// removed is the file behind a link of /proc, such as /proc/self/fd/3, if no
	// path leads to it any more.
	removed fileID
}

// isDir reports whether the entry is a directory.
func (p *dirEntry) isDir() bool { return p.file.Mode&unix.S_IFMT == unix.S_IFDIR }

// close closes the directory of the entry. p may be nil.
func (p *dirEntry) close() {
	if p != nil && p.dir >= 0 {
		unix.Close(p.dir)
	}
}

// mayContinue reports whether the kernel may execute the call of n, which has
// been recorded. It is false for calls that perform must answer: connect, modes
// with the setuid or setgid bit, and refused changes of limits or scheduling.
// Without a recorder and a watcher, only permitted changes of limits or
// scheduling may continue.
func (c *callServer) mayContinue(n *notification) bool {
	if changesLimitsOrScheduling(n) {
		return checkLimitsTarget(n) == 0
	}
	if c.recorder == nil && c.watcher == nil || n.number == unix.SYS_CONNECT {
		return false
	}
	for _, m := range modeCalls {
		if int64(m.number) == int64(n.number) && m.chmod && uint32(n.args[m.mode])&(unix.S_ISUID|unix.S_ISGID) != 0 {
			return false
		}
	}
	for i := range undoCalls {
		if int64(undoCalls[i].number) == int64(n.number) {
			return true
		}
	}
	for _, p := range pathCalls {
		if int64(p.number) == int64(n.number) {
			return true
		}
	}
	return false
}

// letContinue answers n with the permission that the kernel executes the call
// itself (SECCOMP_USER_NOTIF_FLAG_CONTINUE).
func (c *callServer) letContinue(n *notification) {
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
}

// recordBefore records the state that a call is about to change. The caller may then
// change the path in its memory, so that the record describes another file.
// That only harms the caller: the record is not a security boundary.
func (c *callServer) recordBefore(n *notification) {
	r := c.recorder
	if r == nil {
		return
	}
	for i := range undoCalls {
		if call := &undoCalls[i]; int64(call.number) == int64(n.number) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !r.stopped {
				r.settleRename()
				c.record(n, call)
			}
			return
		}
	}
}

// record resolves the paths of a call and records their state. The caller
// holds the recorder's mutex.
func (c *callServer) record(n *notification, call *undoCall) {
	r := c.recorder
	var flags uint64
	if call.flags >= 0 {
		flags = n.args[call.flags]
	}
	if call.effect == effectAdjustOpen || call.effect == effectAdjust && n.args[call.path] == 0 || call.effect == effectAdjust && flags&unix.AT_EMPTY_PATH != 0 {
		fd := 0
		if call.effect == effectAdjust {
			fd = max(call.dir, 0)
		}
		if p := c.entryOfDescriptor(n, int(int32(n.args[fd]))); p != nil {
			r.recordMetadataChange(p)
			p.close()
		}
		return
	}
	follow := !call.doesNotFollow && call.effect >= effectTruncate || call.effect == effectOpen && flags&unix.O_NOFOLLOW == 0
	if (call.effect == effectAdjust) && flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		follow = false
	}
	if call.effect == effectLink {
		follow = flags&unix.AT_SYMLINK_FOLLOW != 0
	}
	p := c.findEntry(n, call, call.dir, call.path, follow)
	defer p.close()
	if call.effect == effectRename || call.effect == effectLink {
		to := c.findEntry(n, call, call.toDir, call.to, false)
		defer to.close()
		switch {
		case to == nil:
		case call.effect == effectLink:
			r.recordLink(p, to)
		case p != nil:
			r.recordRename(p, to, flags)
		}
		return
	}
	if p == nil {
		return
	}
	if p.root < 0 || p.removed != (fileID{}) {
		if call.effect == effectTruncate || call.effect == effectOpen && (call.createsForSure || flags&(unix.O_WRONLY|unix.O_RDWR|unix.O_TRUNC) != 0) {
			r.recordWriteOutside(p)
		}
		return
	}
	switch call.effect {
	case effectOpen:
		if call.createsForSure {
			flags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
		}
		r.recordOpen(p, flags)
	case effectCreate, effectBind:
		r.recordCreate(p)
	case effectRemove:
		r.recordRemove(p, flags&unix.AT_REMOVEDIR != 0)
	case effectRemoveDir:
		r.recordRemove(p, true)
	case effectTruncate:
		r.recordWrite(p)
	case effectAdjust:
		r.recordMetadataChange(p)
	}
}

// recordOpen records an open(2) of the entry p with these flags: what it
// creates, truncates or can write to.
func (r *recorder) recordOpen(p *dirEntry, flags uint64) {
	switch {
	case flags&unix.O_PATH != 0:
	case !p.exists:
		if flags&unix.O_CREAT != 0 {
			r.recordCreate(p)
		}
	case flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
	case flags&(unix.O_WRONLY|unix.O_RDWR|unix.O_TRUNC) != 0:
		r.recordWrite(p)
	}
}

// isIgnoredDevice reports whether path is a device that commands constantly
// open for writing, so that it is not recorded.
func isIgnoredDevice(path string) bool {
	return path == "/dev/null" || path == "/dev/tty" || path == "/dev/stdout" || path == "/dev/stderr"
}

// findEntry resolves a path of the caller except its last component; with follow also
// that, if it is a link. dirArg and pathArg are the indices of the call's arguments with
// the directory (-1: none) and the path. It returns nil if the path leads nowhere or is
// ignored.
func (c *callServer) findEntry(n *notification, call *undoCall, dirArg, pathArg int, follow bool) *dirEntry {
	var path string
	var err error
	if call.effect == effectBind {
		path, err = c.bindPath(n)
	} else {
		path, err = c.recorder.readPath(n, n.args[pathArg])
	}
	if err != nil || path == "" || isIgnoredDevice(path) {
		return nil
	}
	prefix := ""
	if path[0] != '/' {
		prefix = "/proc/" + strconv.Itoa(int(n.pid)) + "/cwd/"
		if dirArg >= 0 && int32(n.args[dirArg]) != unix.AT_FDCWD {
			prefix = "/proc/" + strconv.Itoa(int(n.pid)) + "/fd/" + strconv.Itoa(int(int32(n.args[dirArg]))) + "/"
		}
	} else {
		path = replaceProcSelf(n, path)
	}
	return c.recorder.resolveEntry(unix.AT_FDCWD, prefix, path, follow, 40)
}

// resolveEntry returns the directory entry that path names; the caller closes it. The
// entry need not exist. A relative path starts at prefix, which ends in a slash, or at
// dir if prefix is "". With follow, an entry that is a link is followed to its end,
// over at most that many links. It returns nil if the directory of the entry cannot be
// opened, or a link cannot be read or followed.
func (r *recorder) resolveEntry(dir int, prefix, path string, follow bool, links int) *dirEntry {
	path = strings.TrimRight(path, "/")
	slash := strings.LastIndexByte(path, '/')
	above, base := prefix+path[:slash+1], path[slash+1:]
	if base == "" || base == "." || base == ".." {
		above, base = prefix+path, ""
	}
	if above == "" {
		above = "."
	}
	fd, err := unix.Openat(dir, above, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	p := &dirEntry{dir: fd, base: base}
	if !r.setPath(p) {
		p.close()
		return nil
	}
	p.root = r.rootIndexOf(p.path)
	p.exists = unix.Fstatat(p.dir, p.base, &p.file, unix.AT_SYMLINK_NOFOLLOW) == nil
	if follow && p.exists && p.file.Mode&unix.S_IFMT == unix.S_IFLNK {
		defer p.close()
		if links == 0 {
			return nil
		}
		target := readLinkTarget(p.dir, p.base, &p.file)
		if target == "" {
			return nil
		}
		found := r.resolveEntry(p.dir, "", target, true, links-1)
		var file unix.Stat_t
		if found != nil && !found.exists && unix.Fstatat(p.dir, p.base, &file, 0) == nil {
			found.removed = idOf(&file)
		}
		return found
	}
	return p
}

// setPath sets p.path from the open directory p.dir and p.base. Without a base,
// p becomes the entry of that directory in its parent. It returns false on an
// error.
func (r *recorder) setPath(p *dirEntry) bool {
	dir := r.pathOf(p.dir)
	if dir == "" {
		return false
	}
	if p.base != "" {
		p.path = strings.TrimSuffix(dir, "/") + "/" + p.base
		return true
	}
	fd, err := unix.Openat(p.dir, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(p.dir)
	p.dir, p.path, p.base = fd, dir, filepath.Base(dir)
	return true
}

// pathOf returns the absolute path of the open file fd, "" if it has none.
func (r *recorder) pathOf(fd int) string {
	n, err := unix.Readlink(selfPath(fd), r.buf[:])
	if err != nil || n == 0 || r.buf[0] != '/' {
		return ""
	}
	return string(r.buf[:n])
}

// entryOfDescriptor returns the entry of a file that the caller has open, nil if it is
// in no recorded root.
func (c *callServer) entryOfDescriptor(n *notification, fd int) *dirEntry {
	at := "/proc/" + strconv.Itoa(int(n.pid)) + "/fd/" + strconv.Itoa(fd)
	if fd == unix.AT_FDCWD {
		at = "/proc/" + strconv.Itoa(int(n.pid)) + "/cwd"
	}
	buf := make([]byte, unix.PathMax)
	size, err := unix.Readlink(at, buf)
	if err != nil || size == 0 || buf[0] != '/' {
		return nil
	}
	path := string(buf[:size])
	if c.recorder.rootIndexOf(path) < 0 {
		return nil
	}
	p := c.recorder.resolveEntry(unix.AT_FDCWD, "", path, false, 0)
	var file unix.Stat_t
	if p != nil && (unix.Stat(at, &file) != nil || !p.exists || idOf(&file) != idOf(&p.file)) {
		p.close()
		return nil
	}
	return p
}

// bindPath returns the path that a call binds a unix socket to, "" for other
// addresses.
func (c *callServer) bindPath(n *notification) (string, error) {
	const family = 2
	size := int(int32(n.args[2]))
	if size <= family || size > unix.SizeofSockaddrAny {
		return "", nil
	}
	address, err := c.readMemory(n, n.args[1], size)
	if err != nil || len(address) < size || int(address[0])|int(address[1])<<8 != unix.AF_UNIX {
		return "", err
	}
	path, _, _ := strings.Cut(string(address[family:]), "\x00")
	return path, nil
}

// readPath copies a path from the caller's memory. It allocates less than
// callServer.readPath, since commands that create many files wait for it.
func (r *recorder) readPath(n *notification, address uint64) (string, error) {
	return readCallerPath(n, address, r.buf[:])
}

// readCallerPath reads a path, which ends with NUL, from address in the caller's memory.
// It uses buf as memory. It returns ENAMETOOLONG if the path does not fit into buf, and
// the error of the system call if the memory cannot be read.
func readCallerPath(n *notification, address uint64, buf []byte) (string, error) {
	got := 0
	for got < len(buf) {
		const page = 4 << 10 // a page is readable as a whole or not at all
		size := min(page-int(address+uint64(got))%page, len(buf)-got)
		local := []unix.Iovec{{Base: &buf[got]}}
		local[0].SetLen(size)
		read, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(address) + uintptr(got), Len: size}}, 0)
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(buf[got:got+read], 0); i >= 0 {
			return string(buf[:got+i]), nil
		}
		if got += read; read < size {
			break
		}
	}
	return "", unix.ENAMETOOLONG
}
