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

// callServer answers the system calls of a command that the filter passes to the
// supervisor (seccomp_unotify(2)). The supervisor copies the descriptors and
// the memory of the arguments, and makes the call itself. It never lets the
// kernel continue a call that it has checked: the command could meanwhile have
// replaced the memory or the descriptor. Calls that are only recorded do
// continue, see mayContinue.
//
// The supervisor makes the calls with the command's user and groups and
// without capabilities over files, so no call succeeds that the command could
// not make itself.
type callServer struct {
	listener int
	network  bool
	allowed  []fileID // sockets outside the roots that the command may connect to
	slots    chan struct{}
	recorder *recorder      // nil: no undo record is kept
	watcher  *accessWatcher // nil: the command is not watched
}

// fileID identifies a file by device and inode while the file exists.
type fileID struct{ dev, ino uint64 }

// maxConcurrentCalls bounds the calls that are answered concurrently. A call may wait,
// as a connect waits for its listener. Further calls fail with EAGAIN.
const maxConcurrentCalls = 2000

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

// newCallServer returns nil if the filter answers all calls (listener < 0).
func newCallServer(s *Spec, listener int, allowed []fileID) *callServer {
	if listener < 0 {
		return nil
	}
	return &callServer{listener: listener, network: s.Network, allowed: allowed, slots: make(chan struct{}, maxConcurrentCalls), recorder: newRecorder(s), watcher: newAccessWatcher(s)}
}

// serve answers calls until the process ends.
func (c *callServer) serve() {
	// Wake the caller on this processor, which becomes free with the answer.
	unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // the caller was killed
			continue
		default:
			unix.Close(c.listener) // calls now fail with ENOSYS
			return
		}
		c.recordBefore(&n)
		c.watchCall(&n)
		if c.mayContinue(&n) {
			c.letContinue(&n)
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

// answer ends a call with a result. It ignores errors: the caller may be gone.
func (c *callServer) answer(n *notification, result unix.Errno) {
	r := response{id: n.id, errno: -int32(result)}
	unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
}

// isPending reports whether the caller is still in this call. Data read from a
// process by its number before isPending returned true came from the caller.
func (c *callServer) isPending(n *notification) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&n.id)))
	return errno == 0
}

// perform makes the call of n for its caller and returns 0 or the errno for the
// caller. It knows connect(2), calls that set a mode, and calls that change
// limits or scheduling.
func (c *callServer) perform(n *notification) unix.Errno {
	var err error
	switch n.number {
	case unix.SYS_CONNECT:
		err = c.connect(n)
	default:
		if changesLimitsOrScheduling(n) {
			return checkLimitsTarget(n)
		}
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

// duplicateDescriptor returns a duplicate of the caller's descriptor fd in this
// process (pidfd_getfd(2)), which the caller of the method closes.
func (c *callServer) duplicateDescriptor(n *notification, fd int) (int, error) {
	process, err := unix.PidfdOpen(int(n.pid), unix.PIDFD_THREAD)
	if err == unix.EINVAL { // before Linux 6.9; threads share descriptors, except in a hostile program
		process, err = unix.PidfdOpen(processOfThread(n.pid), 0)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, fd, 0)
}

// processOfThread returns the process id of a thread, -1 on an error.
func processOfThread(thread uint32) int {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(int(thread)) + "/status")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Tgid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(rest))
			return pid
		}
	}
	return -1
}

// readMemory copies size bytes of the caller's memory, or fewer if only those are
// readable.
func (c *callServer) readMemory(n *notification, address uint64, size int) ([]byte, error) {
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

// readPath copies a path from the caller's memory, without its final NUL. It
// returns EFAULT for unreadable memory and ENAMETOOLONG for a path without a
// NUL.
func (c *callServer) readPath(n *notification, address uint64) (string, error) {
	page := os.Getpagesize()
	var path []byte
	for len(path) < unix.PathMax {
		b, err := c.readMemory(n, address+uint64(len(path)), page-int(address+uint64(len(path)))%page) // a page is readable as a whole or not at all
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

// openCallerPath resolves a path as the caller would, and opens the file with O_PATH,
// without access to its content. A relative path starts at the descriptor dir
// or at AT_FDCWD. The command has the supervisor's root directory and mounts,
// and cannot get others. The error is the errno for the caller. The result must be closed.
func (c *callServer) openCallerPath(n *notification, dir int, path string, flags int) (int, error) {
	if path == "" {
		return -1, unix.ENOENT
	}
	path = replaceProcSelf(n, path)
	at := unix.AT_FDCWD
	if path[0] != '/' {
		var err error
		if dir == unix.AT_FDCWD {
			at, err = unix.Open("/proc/"+strconv.Itoa(int(n.pid))+"/cwd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		} else {
			at, err = c.duplicateDescriptor(n, dir)
		}
		if err != nil {
			return -1, err
		}
		defer unix.Close(at)
	}
	return unix.Openat(at, path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
}

// replaceProcSelf replaces /proc/self and similar prefixes, which would mean the
// supervisor, by the caller's entry of /proc. It does not detect a link to
// such a prefix: that leads to the supervisor's entry, and the checks then
// apply to the file found there.
func replaceProcSelf(n *notification, path string) string {
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

// selfPath returns the path in /proc/self/fd of a descriptor of this process.
// It needs no search permission on any directory.
func selfPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// connect makes a connect(2) call of the caller. It returns the errno for the
// caller, nil on success.
func (c *callServer) connect(n *notification) error {
	size := int(int32(n.args[2]))
	if size < 0 || size > unix.SizeofSockaddrAny+16 { // struct sockaddr_storage
		return unix.EINVAL
	}
	address, err := c.readMemory(n, n.args[1], size)
	if err != nil {
		return err
	}
	if len(address) < size {
		return unix.EFAULT
	}
	socket, err := c.duplicateDescriptor(n, int(int32(n.args[0])))
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
		return connectNetlink(socket, address)
	}
	if !c.isPending(n) {
		return unix.EINTR
	}
	return c.connectInterruptibly(n, socket, address)
}

// connectNetlink connects a netlink socket to the kernel. It returns EPERM for other
// addresses, since the supervisor has rights for them that the command has not.
func connectNetlink(socket int, address []byte) error {
	const pid, groups = 4, 8 // struct sockaddr_nl
	for i := pid; i < len(address) && i < groups+4; i++ {
		if address[i] != 0 {
			return unix.EPERM
		}
	}
	return connect(socket, address)
}

// connectUnix connects to a socket that a process of the command bound, or to
// one in Spec.Sockets. It connects to abstract sockets if the command
// has its own network namespace.
func (c *callServer) connectUnix(n *notification, socket int, address []byte) error {
	const family = 2 // bytes
	if len(address) <= family {
		return connect(socket, address) // the kernel returns the error
	}
	if kind := int(*(*uint16)(unsafe.Pointer(&address[0]))); kind != unix.AF_UNIX {
		return unix.EINVAL
	}
	if address[family] == 0 {
		if c.network { // the user's abstract sockets are in the same network namespace
			return unix.EPERM
		}
		return c.connectInterruptibly(n, socket, address)
	}
	path, _, _ := strings.Cut(string(address[family:]), "\x00")
	if len(path) > len(unix.RawSockaddrUnix{}.Path) {
		return unix.EINVAL
	}
	target, err := c.openCallerPath(n, unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	if !c.isPending(n) {
		return unix.EINTR
	}
	if err := c.checkConnect(target); err != nil {
		return err
	}
	var found unix.RawSockaddrUnix
	found.Family = unix.AF_UNIX
	copied := 0
	for i, b := range []byte(selfPath(target)) {
		found.Path[i], copied = int8(b), i+1
	}
	return c.connectInterruptibly(n, socket, unsafe.Slice((*byte)(unsafe.Pointer(&found)), family+copied+1))
}

// checkConnect returns nil if the command may connect to an open file: a socket of
// Spec.Sockets, or one that a process of the command bound in a writable mount. Otherwise
// it returns the errno for the call.
func (c *callServer) checkConnect(target int) error {
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
	if !c.isBoundByCommand(target, &file) {
		return unix.ECONNREFUSED // as if nobody listened, so that a program replaces what an earlier one left
	}
	return nil
}

// connectPollInterval is the time that a connect waits before it checks again
// whether the caller still waits.
const connectPollInterval = 50 * time.Millisecond

// errRestart makes the kernel repeat a call or end it with EINTR, as the handler
// of the interrupting signal requires (ERESTARTSYS of linux/errno.h).
const errRestart = unix.Errno(512)

// connectInterruptibly connects a socket of the command. If the socket is blocking, it
// waits for the connection in slices of connectPollInterval, and changes the socket's
// SO_SNDTIMEO meanwhile. It returns EINTR if the caller no longer waits, errRestart if
// the caller has a pending signal, and connect's error when the socket's own timeout is
// over.
func (c *callServer) connectInterruptibly(n *notification, socket int, address []byte) error {
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
	each := unix.NsecToTimeval(int64(connectPollInterval))
	if limit > 0 {
		each = unix.NsecToTimeval(int64(min(connectPollInterval, limit)))
	}
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &each); err != nil {
		return err
	}
	defer unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, own)
	for began, first := time.Now(), true; ; first = false {
		err := connect(socket, address)
		switch {
		case err == unix.EALREADY && !first, err == unix.EINPROGRESS, err == unix.EAGAIN: // not connected yet
		case err == unix.EINTR: // a signal of this process: with SO_SNDTIMEO no connect is restarted, signal(7)
		default:
			return err
		}
		if !c.isPending(n) {
			return unix.EINTR
		}
		if hasPendingSignal(n) {
			return errRestart
		}
		if limit > 0 && time.Since(began) >= limit {
			return err
		}
	}
}

// hasPendingSignal reports whether the caller has a pending signal that is neither
// blocked nor ignored.
func hasPendingSignal(n *notification) bool {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(int(n.pid)) + "/status")
	sets := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		if name, set, ok := strings.Cut(line, ":"); ok && (strings.HasPrefix(name, "Sig") || name == "ShdPnd") {
			sets[name], _ = strconv.ParseUint(strings.TrimSpace(set), 16, 64)
		}
	}
	return (sets["SigPnd"]|sets["ShdPnd"])&^sets["SigBlk"]&^sets["SigIgn"] != 0
}

// connect makes connect(2) with an address as the kernel encodes it, and
// returns its errno.
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
