package supervise

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls answers the system calls of a command that the filter hands to the
// supervisor (seccomp_unotify(2)). It makes them itself, on descriptors and
// memory that it copied first, and never lets the kernel go on with a call
// that it judges: the command could have put another pointer target, or another
// descriptor in place by then. Calls that are only recorded do go on, see
// continues.
//
// The supervisor makes them with the command's user and groups and without
// capabilities over files, so nothing succeeds that the command could not do.
type calls struct {
	listener int
	network  bool
	allowed  []fileID // sockets outside that may be connected to
	slots    chan struct{}
	recorder *recorder // nil: no undo record is kept
}

// fileID identifies a file.
type fileID struct{ dev, ino uint64 }

// mostCalls bounds the calls that are answered at the same time. Each may wait: a
// connect for its listener. More fail with EAGAIN.
const mostCalls = 2000

// The structures of linux/seccomp.h.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		number     int32
		arch       uint32
		pointer    uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// newCalls returns nil where the filter answers all calls.
func newCalls(s *Spec, listener int, allowed []fileID) *calls {
	if listener < 0 {
		return nil
	}
	return &calls{listener: listener, network: s.Network, allowed: allowed, slots: make(chan struct{}, mostCalls), recorder: newRecorder(s)}
}

// serve answers calls until the process ends.
func (c *calls) serve() {
	// Wakes the caller on this processor, which is free once it is answered.
	unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // the caller was killed
			continue
		default:
			unix.Close(c.listener) // calls fail with ENOSYS from now on
			return
		}
		c.before(&n)
		if c.continues(&n) {
			c.proceed(&n)
			continue
		}
		select {
		case c.slots <- struct{}{}:
			go func() {
				c.answer(&n, c.perform(&n))
				<-c.slots
			}()
		default:
			c.answer(&n, unix.EAGAIN)
		}
	}
}

// answer ends a call. A caller that is gone needs none.
func (c *calls) answer(n *notification, result unix.Errno) {
	r := response{id: n.id, errno: -int32(result)}
	unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
}

// waits reports whether the caller is still in this call: what was read of the
// process with its number was the caller's.
func (c *calls) waits(n *notification) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&n.id)))
	return errno == 0
}

// perform does what the caller asked for.
func (c *calls) perform(n *notification) unix.Errno {
	var err error
	switch n.number {
	case unix.SYS_CONNECT:
		err = c.connect(n)
	default:
		err = c.chmod(n)
	}
	if err == nil {
		return 0
	}
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return unix.EPERM
}

// descriptor duplicates a descriptor of the caller.
func (c *calls) descriptor(n *notification, fd int) (int, error) {
	process, err := unix.PidfdOpen(int(n.pid), unix.PIDFD_THREAD)
	if err == unix.EINVAL { // before Linux 6.9; threads share descriptors, unless somebody is playing
		process, err = unix.PidfdOpen(groupOf(n.pid), 0)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, fd, 0)
}

// groupOf returns the process that a thread belongs to.
func groupOf(thread uint32) int {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(int(thread)) + "/status")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Tgid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(rest))
			return pid
		}
	}
	return -1
}

// memory copies bytes of the caller. It returns fewer where fewer can be read.
func (c *calls) memory(n *notification, address uint64, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b := make([]byte, size)
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(size)
	got, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
	if err != nil {
		return nil, err
	}
	return b[:got], nil
}

// text copies a path of the caller.
func (c *calls) text(n *notification, address uint64) (string, error) {
	page := os.Getpagesize()
	var path []byte
	for len(path) < unix.PathMax {
		b, err := c.memory(n, address+uint64(len(path)), page-int(address+uint64(len(path)))%page) // pages come and go as a whole
		if err != nil {
			return "", err
		}
		if i := strings.IndexByte(string(b), 0); i >= 0 {
			return string(append(path, b[:i]...)), nil
		}
		path = append(path, b...)
	}
	return "", unix.ENAMETOOLONG
}

// open resolves a path as the caller would and opens what it leads to without
// any right. dir is what relative paths start from, or AT_FDCWD. The command
// has the supervisor's root directory and mounts, and cannot get others.
func (c *calls) open(n *notification, dir int, path string, flags int) (int, error) {
	if path == "" {
		return -1, unix.ENOENT
	}
	path = ownPath(n, path)
	at := unix.AT_FDCWD
	if path[0] != '/' {
		var err error
		if dir == unix.AT_FDCWD {
			at, err = unix.Open("/proc/"+strconv.Itoa(int(n.pid))+"/cwd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		} else {
			at, err = c.descriptor(n, dir)
		}
		if err != nil {
			return -1, err
		}
		defer unix.Close(at)
	}
	return unix.Openat(at, path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
}

// ownPath names the caller's own entry of /proc, which would be the
// supervisor's. A link to it is not seen through: it then leads to another
// place, and what is there is what counts.
func ownPath(n *notification, path string) string {
	thread := strconv.Itoa(int(n.pid))
	for prefix, own := range map[string]string{
		"/proc/self/": "/proc/" + thread + "/", "/proc/thread-self/": "/proc/" + thread + "/", "/dev/fd/": "/proc/" + thread + "/fd/",
	} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return own + rest
		}
	}
	return path
}

// selfPath names a descriptor of this process by a path that needs no search.
func selfPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// connect connects the caller's socket.
func (c *calls) connect(n *notification) error {
	size := int(int32(n.args[2]))
	if size < 0 || size > unix.SizeofSockaddrAny+16 { // struct sockaddr_storage
		return unix.EINVAL
	}
	address, err := c.memory(n, n.args[1], size)
	if err != nil {
		return err
	}
	if len(address) < size {
		return unix.EFAULT
	}
	socket, err := c.descriptor(n, int(int32(n.args[0])))
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	family, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err // ENOTSOCK
	}
	switch family {
	case unix.AF_INET, unix.AF_INET6:
	case unix.AF_UNIX:
		return c.connectUnix(n, socket, address)
	default:
		return connectOther(socket, address)
	}
	if !c.waits(n) {
		return unix.EINTR
	}
	return c.connectWhile(n, socket, address)
}

// connectOther is for netlink, where an address other than the kernel's would
// be a matter of rights, which the supervisor has and the command has not.
func connectOther(socket int, address []byte) error {
	const pid, groups = 4, 8 // struct sockaddr_nl
	for i := pid; i < len(address) && i < groups+4; i++ {
		if address[i] != 0 {
			return unix.EPERM
		}
	}
	return connect(socket, address)
}

// connectUnix connects to a socket that lies where the command may write, to
// one that the user opened, or where no other is in reach to an abstract one.
func (c *calls) connectUnix(n *notification, socket int, address []byte) error {
	const family = 2 // bytes
	if len(address) <= family {
		return connect(socket, address) // the kernel knows the error
	}
	if kind := int(*(*uint16)(unsafe.Pointer(&address[0]))); kind != unix.AF_UNIX {
		return unix.EINVAL
	}
	if address[family] == 0 {
		if c.network { // the user's are in the same network namespace
			return unix.EPERM
		}
		return c.connectWhile(n, socket, address)
	}
	path, _, _ := strings.Cut(string(address[family:]), "\x00")
	if len(path) > len(unix.RawSockaddrUnix{}.Path) {
		return unix.EINVAL
	}
	target, err := c.open(n, unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	if !c.waits(n) {
		return unix.EINTR
	}
	if err := c.permits(target); err != nil {
		return err
	}
	var found unix.RawSockaddrUnix
	found.Family = unix.AF_UNIX
	copied := 0
	for i, b := range []byte(selfPath(target)) {
		found.Path[i], copied = int8(b), i+1
	}
	return c.connectWhile(n, socket, unsafe.Slice((*byte)(unsafe.Pointer(&found)), family+copied+1))
}

// permits reports whether the command may connect to an open file.
func (c *calls) permits(target int) error {
	var file unix.Stat_t
	var system unix.Statfs_t
	if err := unix.Fstat(target, &file); err != nil {
		return err
	}
	if file.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ECONNREFUSED
	}
	for _, id := range c.allowed {
		if id == (fileID{uint64(file.Dev), file.Ino}) {
			return nil
		}
	}
	if err := unix.Fstatfs(target, &system); err != nil {
		return err
	}
	if system.Flags&unix.ST_RDONLY != 0 { // of the mount, see arrangeMounts
		return unix.EACCES
	}
	return nil
}

// slice is how long a connect waits before it is looked whether the caller
// still does.
const slice = 50 * time.Millisecond

// restart makes the kernel repeat a call, or end it with EINTR, as the handler
// of the signal that interrupted it wants (ERESTARTSYS of linux/errno.h).
const restart = unix.Errno(512)

// connectWhile connects a socket. One that blocks waits, in slices by its own
// timeout, until the caller is killed or gets a signal.
func (c *calls) connectWhile(n *notification, socket int, address []byte) error {
	flags, err := unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if flags&unix.O_NONBLOCK != 0 {
		return connect(socket, address)
	}
	own, err := unix.GetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return err
	}
	limit := time.Duration(own.Nano())
	each := unix.NsecToTimeval(int64(slice))
	if limit > 0 {
		each = unix.NsecToTimeval(int64(min(slice, limit)))
	}
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &each); err != nil {
		return err
	}
	defer unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, own)
	for began, first := time.Now(), true; ; first = false {
		err := connect(socket, address)
		switch {
		case err == unix.EALREADY && !first, err == unix.EINPROGRESS, err == unix.EAGAIN: // is not there yet
		case err == unix.EINTR: // a signal of this process: with SO_SNDTIMEO no connect is restarted, signal(7)
		default:
			return err
		}
		if !c.waits(n) {
			return unix.EINTR
		}
		if interrupted(n) {
			return restart
		}
		if limit > 0 && time.Since(began) >= limit {
			return err
		}
	}
}

// interrupted reports whether the caller has a signal to handle.
func interrupted(n *notification) bool {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(int(n.pid)) + "/status")
	sets := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		if name, set, ok := strings.Cut(line, ":"); ok && (strings.HasPrefix(name, "Sig") || name == "ShdPnd") {
			sets[name], _ = strconv.ParseUint(strings.TrimSpace(set), 16, 64)
		}
	}
	return (sets["SigPnd"]|sets["ShdPnd"])&^sets["SigBlk"]&^sets["SigIgn"] != 0
}

func connect(socket int, address []byte) error {
	var first *byte
	if len(address) > 0 {
		first = &address[0]
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(first)), uintptr(len(address)))
	runtime.KeepAlive(address)
	if errno != 0 {
		return errno
	}
	return nil
}
