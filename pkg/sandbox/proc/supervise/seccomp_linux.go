package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is written by hand as classic BPF over struct seccomp_data
// (seccomp(2)): the number at 0, the architecture at 4, the arguments from 16
// on, eight bytes each, of which the low four are looked at. Both
// architectures with tables are little-endian.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// forbidden fail with EPERM, as they would for a user without the right.
var forbidden = [...]uint32{
	// name spaces and mounts
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, sysOpenTreeAttr,
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE,
	// large and seldom needed parts of the kernel
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_LOOKUP_DCOOKIE,
	// the machine itself
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
}

// absent fail with ENOSYS, so that programs take the older way: io_uring does
// file and network work that no filter sees, and clone3 has its flags in
// memory, where a filter cannot read them.
// openat2 has the modes of the files it creates in memory, too. Pages of
// memfd_secret are in no figure that the memory watch can read.
var absent = [...]uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3,
	unix.SYS_OPENAT2, unix.SYS_MEMFD_SECRET,
}

// unsupported fail with EOPNOTSUPP, as on a file system without extended
// attributes: cp -a, tar and rsync go on without them. Neither Landlock nor a
// read-only rule of Landlock holds them back.
var unsupported = [...]uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	unix.SYS_FILE_SETATTR,
}

// The ioctls that change the attributes of an inode (linux/fs.h).
const (
	fsIocSetFlags  = 0x40086602
	fsIocFsSetAttr = 0x401c5820
)

// sysOpenTreeAttr is open_tree_attr(2), which x/sys does not name yet.
const sysOpenTreeAttr = 467

// newNamespaces are the flags of clone that make a name space.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// sockType are the bits of a socket's type without its flags (linux/net.h).
const sockType = 0xf

// creates are the flags of open(2) with which its mode counts: O_CREAT and
// __O_TMPFILE (asm-generic/fcntl.h).
const creates = unix.O_CREAT | 0o20000000

// modeCall is a system call that gives a file a mode.
type modeCall struct {
	number uint32
	mode   uint32 // which argument
	flags  uint32 // which argument are the flags of open(2), 0 for none
	chmod  bool   // of a file that exists and can be a directory
}

// filterFor is what a filter depends on.
type filterFor struct {
	level   Level
	network bool
	noUnix  bool // no unix sockets at L2 either
	undo    bool // the supervisor records what calls change
}

// notifies reports whether the supervisor answers some calls itself.
func (f filterFor) notifies() bool { return f.level == L2 && !f.noUnix }

// program is a filter under construction. Each part begins and ends with the
// number of the call in the accumulator.
type program []unix.SockFilter

func (p *program) load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (p *program) loadArg(n uint32) { p.load(offsetArgs + 8*n) }

func (p *program) answer(action uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

func (p *program) fail(errno unix.Errno) { p.answer(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
func (p *program) allow()                { p.answer(unix.SECCOMP_RET_ALLOW) }

// when runs then where the test of the accumulator succeeds, else goes on
// after it.
func (p *program) when(test uint16, k uint32, then func(*program)) {
	var inner program
	then(&inner)
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jf: uint8(len(inner)), K: k})
	*p = append(*p, inner...)
}

// on is when for the number of a call; then must answer in all cases, as it
// loads something else.
func (p *program) on(number uint32, then func(*program)) { p.when(unix.BPF_JEQ, number, then) }

// refuse makes calls fail.
func (p *program) refuse(numbers []uint32, errno unix.Errno) {
	for _, number := range numbers {
		p.on(number, func(p *program) { p.fail(errno) })
	}
}

// filter builds the program.
func filter(f filterFor) []unix.SockFilter {
	var p program
	p.load(offsetArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jt: 1, K: AuditArch})
	p.answer(unix.SECCOMP_RET_KILL_PROCESS)
	p.load(offsetNumber)
	p.when(unix.BPF_JGE, X32Bit, func(p *program) { p.fail(unix.ENOSYS) })
	p.modes(f) // open is the most frequent of all calls that depend on arguments
	p.refuse(absent[:], unix.ENOSYS)
	p.refuse(forbidden[:], unix.EPERM)
	p.refuse(forbiddenHere[:], unix.EPERM)
	p.refuse(unsupported[:], unix.EOPNOTSUPP)
	p.on(unix.SYS_CLONE, func(p *program) {
		p.loadArg(0)
		p.when(unix.BPF_JSET, newNamespaces, func(p *program) { p.fail(unix.EPERM) })
		p.allow()
	})
	p.on(unix.SYS_IOCTL, func(p *program) {
		p.loadArg(1)
		for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX} {
			p.when(unix.BPF_JEQ, request, func(p *program) { p.fail(unix.EPERM) })
		}
		for _, request := range []uint32{fsIocSetFlags, fsIocFsSetAttr} {
			p.when(unix.BPF_JEQ, request, func(p *program) { p.fail(unix.EOPNOTSUPP) })
		}
		p.allow()
	})
	if f.level == L1 {
		p.others()
		p.refuse(systemV[:], unix.ENOSYS)
	}
	p.sockets(f)
	p.observed(f)
	p.allow()
	return p
}

// modes refuses setuid and setgid bits. Directories may have the latter, which
// git init --shared and file trees of groups need: the supervisor, where it
// answers calls, sees whether it is one.
func (p *program) modes(f filterFor) {
	for _, c := range modeCalls {
		p.on(c.number, func(p *program) {
			if c.flags > 0 {
				p.loadArg(c.flags)
				var others program
				others.observe(f, c.number)
				*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JSET, Jt: uint8(len(others)), K: creates})
				*p = append(*p, others...)
			}
			p.loadArg(c.mode)
			p.when(unix.BPF_JSET, unix.S_ISUID, func(p *program) { p.fail(unix.EPERM) })
			p.when(unix.BPF_JSET, unix.S_ISGID, func(p *program) {
				if c.chmod && f.notifies() {
					p.answer(unix.SECCOMP_RET_USER_NOTIF)
				} else {
					p.fail(unix.EPERM)
				}
			})
			p.observe(f, c.number)
		})
	}
}

// others keeps from changing other processes of the same user, which are in
// reach without a pid namespace.
func (p *program) others() {
	refuseOther := func(p *program) {
		p.when(unix.BPF_JEQ, 0, func(p *program) { p.allow() })
		p.fail(unix.EPERM)
	}
	p.on(unix.SYS_PRLIMIT64, func(p *program) {
		p.loadArg(0)
		refuseOther(p)
	})
	p.on(unix.SYS_SETPRIORITY, func(p *program) {
		p.loadArg(0)
		p.when(unix.BPF_JEQ, unix.PRIO_PROCESS, func(p *program) {
			p.loadArg(1)
			refuseOther(p)
		})
		p.fail(unix.EPERM)
	})
}

// sockets says which sockets can be made. There is no other way to say it:
// families such as vsock belong to no network namespace.
//
// A datagram socket of the unix family can send to any socket that has a
// name, with each message to another, and its calls have the name in memory.
// So there are none, neither single nor in pairs. The two other types have to
// be connected first, by a call that the supervisor makes (see calls).
func (p *program) sockets(f filterFor) {
	connected := func(errno unix.Errno) func(*program) {
		return func(p *program) {
			p.loadArg(1)
			*p = append(*p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: sockType})
			for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
				p.when(unix.BPF_JEQ, kind, func(p *program) { p.allow() })
			}
			p.fail(errno)
		}
	}
	p.on(unix.SYS_SOCKETPAIR, connected(unix.EPERM))
	if f.notifies() {
		p.on(unix.SYS_CONNECT, func(p *program) { p.answer(unix.SECCOMP_RET_USER_NOTIF) })
	}
	p.on(unix.SYS_SOCKET, func(p *program) {
		p.loadArg(0)
		if f.notifies() {
			p.when(unix.BPF_JEQ, unix.AF_UNIX, connected(unix.EPROTONOSUPPORT))
		}
		if f.level == L1 && !f.network {
			p.fail(unix.EPERM)
			return
		}
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
			p.when(unix.BPF_JEQ, family, func(p *program) { p.allow() })
		}
		p.fail(unix.EAFNOSUPPORT)
	})
}

// restrictCalls filters the system calls of this thread and of what it clones.
// It returns the descriptor by which the supervisor answers calls, -1 where
// the filter answers all of them.
func restrictCalls(f filterFor) (listener int, err error) {
	if AuditArch == 0 {
		return -1, fmt.Errorf("no table of system calls for %s", runtime.GOARCH)
	}
	if !f.notifies() && !f.undo {
		_, err := install(filter(f), 0)
		return -1, err
	}
	// Once the supervisor has taken a call, only what kills the caller ends its
	// waiting. Older kernels let each signal do so, and then repeat the call.
	listener, err = install(filter(f), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		listener, err = install(filter(f), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	return listener, err
}

func install(program []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return -1, os.NewSyscallError("seccomp", errno)
	}
	return int(fd), nil
}
