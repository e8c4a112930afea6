package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is classic BPF over struct seccomp_data (seccomp(2)), written by
// hand. The call number is at offset 0, the architecture at 4. The arguments
// begin at 16 with eight bytes each; the filter checks the low four. All
// architectures with tables are little-endian.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// callsWithEPERM lists calls that fail with EPERM, as for a user without the right.
var callsWithEPERM = [...]uint32{
	// namespaces and mounts
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, sysOpenTreeAttr,
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE,
	// large and rarely needed parts of the kernel
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_LOOKUP_DCOOKIE,
	// the machine itself
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
}

// callsWithENOSYS lists calls that fail with ENOSYS, so that programs use an older
// call. io_uring does file and network operations that no filter sees. clone3
// has its flags in memory, which a filter cannot read; openat2 likewise has
// the modes of the files that it creates. Pages of memfd_secret are missing in
// every figure that the memory watch can read.
var callsWithENOSYS = [...]uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3,
	unix.SYS_OPENAT2, unix.SYS_MEMFD_SECRET,
}

// callsWithEOPNOTSUPP lists calls that fail with EOPNOTSUPP, as on a file system
// without extended attributes: cp -a, tar and rsync then continue without
// them. Neither Landlock nor its read-only rules restrict these calls.
var callsWithEOPNOTSUPP = [...]uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	unix.SYS_FILE_SETATTR,
}

// sysOpenTreeAttr is the number of open_tree_attr(2), which x/sys does not
// define yet.
const sysOpenTreeAttr = 467

// newNamespaces are the flags of clone(2) that create a namespace.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// schedulingCalls holds the system calls that change the scheduling of the thread
// given by their first argument.
var schedulingCalls = [...]uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}

// ioprioProcess is IOPRIO_WHO_PROCESS (linux/ioprio.h).
const ioprioProcess = 1

// sockType masks the type of a socket without its flags (linux/net.h).
const sockType = 0xf

// openModeFlags are the flags of open(2) that make it use its mode argument: O_CREAT
// and __O_TMPFILE (asm-generic/fcntl.h).
const openModeFlags = unix.O_CREAT | 0o20000000

// modeCall describes a system call that sets the mode of a file.
type modeCall struct {
	number uint32
	mode   uint32 // index of the mode argument
	flags  uint32 // index of the argument with the flags of open(2); 0 for none
	chmod  bool   // the file exists and may be a directory
}

// filterOptions says what a seccomp filter refuses and what it passes to the
// supervisor.
type filterOptions struct {
	level   Level
	network bool
	noUnix  bool // refuse unix sockets at L2 too
	undo    bool // pass calls that change files to the supervisor, which records them
	watch   bool // pass calls that name files to the supervisor, which reports them
}

// passesCallsToSupervisor reports whether the supervisor makes some calls for
// the command itself, whatever undo and watch are.
func (f filterOptions) passesCallsToSupervisor() bool { return f.level == L2 && !f.noUnix }

// program is a seccomp filter under construction (classic BPF). At the
// beginning and end of each part, the accumulator holds the call number.
type program []unix.SockFilter

// load adds an instruction that loads the 32 bits at an offset of the call data
// (struct seccomp_data).
func (p *program) load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

// loadArg adds an instruction that loads the lower 32 bits of the call's
// argument n, counted from 0.
func (p *program) loadArg(n uint32) { p.load(offsetArgs + 8*n) }

// returnAction adds the end of the filter with an action (SECCOMP_RET_…).
func (p *program) returnAction(action uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

// returnErrno adds the end of the filter that makes the call fail with errno.
func (p *program) returnErrno(errno unix.Errno) {
	p.returnAction(unix.SECCOMP_RET_ERRNO | uint32(errno))
}

// allow adds the end of the filter that lets the kernel make the call.
func (p *program) allow() { p.returnAction(unix.SECCOMP_RET_ALLOW) }

// ifTrue makes the filter run the part that then adds if the comparison test
// (BPF_JEQ and so on) of the accumulator with k succeeds, else it continues
// with the next instruction after then.
func (p *program) ifTrue(test uint16, k uint32, then func(*program)) {
	var inner program
	then(&inner)
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jf: uint8(len(inner)), K: k})
	*p = append(*p, inner...)
}

// onCall adds the part that then adds, for the call number only. then must
// answer in all cases, since it changes the accumulator.
func (p *program) onCall(number uint32, then func(*program)) { p.ifTrue(unix.BPF_JEQ, number, then) }

// refuse adds rules that make the calls numbers fail with errno.
func (p *program) refuse(numbers []uint32, errno unix.Errno) {
	for _, number := range numbers {
		p.onCall(number, func(p *program) { p.returnErrno(errno) })
	}
}

// buildFilter returns the seccomp filter for the options: the calls that fail
// with an errno, those that the supervisor receives, and for all others
// permission.
func buildFilter(f filterOptions) []unix.SockFilter {
	var p program
	p.load(offsetArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jt: 1, K: AuditArch})
	p.returnAction(unix.SECCOMP_RET_KILL_PROCESS)
	p.load(offsetNumber)
	p.ifTrue(unix.BPF_JGE, X32Bit, func(p *program) { p.returnErrno(unix.ENOSYS) })
	p.addModeRules(f) // first, since open is the most frequent call with checked arguments
	p.refuse(callsWithENOSYS[:], unix.ENOSYS)
	p.refuse(callsWithEPERM[:], unix.EPERM)
	p.refuse(archCallsWithEPERM[:], unix.EPERM)
	p.refuse(callsWithEOPNOTSUPP[:], unix.EOPNOTSUPP)
	p.onCall(unix.SYS_CLONE, func(p *program) {
		p.loadArg(0)
		p.ifTrue(unix.BPF_JSET, newNamespaces, func(p *program) { p.returnErrno(unix.EPERM) })
		p.allow()
	})
	p.onCall(unix.SYS_IOCTL, (*program).addIoctlRules)
	// RENAME_WHITEOUT makes a device. It fails as on a file system without it.
	p.onCall(unix.SYS_RENAMEAT2, func(p *program) {
		p.loadArg(4)
		p.ifTrue(unix.BPF_JSET, unix.RENAME_WHITEOUT, func(p *program) { p.returnErrno(unix.EINVAL) })
		p.notifyOrAllow(f, unix.SYS_RENAMEAT2)
	})
	p.addLimitsRules(f)
	if f.level == L1 {
		p.refuse(systemVCalls[:], unix.ENOSYS)
		p.refuse(messageQueueCalls[:], unix.ENOSYS)
	}
	p.addSocketRules(f)
	p.addUndoRules(f)
	p.addWatchRules(f)
	p.allow()
	return p
}

// addModeRules refuses the setuid and setgid bits. Directories may have the setgid
// bit, which git init --shared and file trees of groups need. A filter cannot
// see whether the file is a directory; the supervisor can, where it answers
// calls.
func (p *program) addModeRules(f filterOptions) {
	for _, c := range modeCalls {
		p.onCall(c.number, func(p *program) {
			if c.flags > 0 {
				p.loadArg(c.flags)
				var others program
				others.notifyOrAllow(f, c.number)
				*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JSET, Jt: uint8(len(others)), K: openModeFlags})
				*p = append(*p, others...)
			}
			p.loadArg(c.mode)
			p.ifTrue(unix.BPF_JSET, unix.S_ISUID, func(p *program) { p.returnErrno(unix.EPERM) })
			p.ifTrue(unix.BPF_JSET, unix.S_ISGID, func(p *program) {
				if c.chmod && f.passesCallsToSupervisor() {
					p.returnAction(unix.SECCOMP_RET_USER_NOTIF)
				} else {
					p.returnErrno(unix.EPERM)
				}
			})
			p.notifyOrAllow(f, c.number)
		})
	}
}

// addLimitsRules restricts changes to other processes of the same user. Without a pid
// namespace, all of them are accessible, so the calls are refused. With one, the
// only process that is not the command's is the supervisor, whose limits and
// scheduling the kernel protects by the user id alone: the supervisor receives
// the calls and decides (see checkLimitsTarget).
func (p *program) addLimitsRules(f filterOptions) {
	refuseOther := func(p *program) {
		p.ifTrue(unix.BPF_JEQ, 0, func(p *program) { p.allow() })
		if f.passesCallsToSupervisor() {
			p.returnAction(unix.SECCOMP_RET_USER_NOTIF)
		} else {
			p.returnErrno(unix.EPERM)
		}
	}
	p.onCall(unix.SYS_PRLIMIT64, func(p *program) {
		p.loadArg(0)
		refuseOther(p)
	})
	for _, number := range schedulingCalls {
		p.onCall(number, func(p *program) {
			p.loadArg(0)
			refuseOther(p)
		})
	}
	for _, call := range [...]struct{ number, process uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_PROCESS}, {unix.SYS_IOPRIO_SET, ioprioProcess}} {
		p.onCall(call.number, func(p *program) {
			p.loadArg(0)
			p.ifTrue(unix.BPF_JEQ, call.process, func(p *program) {
				p.loadArg(1)
				refuseOther(p)
			})
			if f.passesCallsToSupervisor() {
				p.ifTrue(unix.BPF_JEQ, call.process+1, func(p *program) { // a group of processes
					p.loadArg(1)
					refuseOther(p)
				})
			}
			p.returnErrno(unix.EPERM)
		})
	}
}

// addSocketRules restricts the kinds of sockets that can be created. Only the filter
// can do that, since families such as vsock belong to no network namespace.
//
// A unix datagram socket can send each message to another named socket, and
// the name is in memory, where the filter cannot read it. Therefore datagram
// sockets are refused, also in pairs. The other two types must be connected
// first, by a call that the supervisor makes (see callServer).
func (p *program) addSocketRules(f filterOptions) {
	connected := func(errno unix.Errno) func(*program) {
		return func(p *program) {
			p.loadArg(1)
			*p = append(*p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: sockType})
			for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
				p.ifTrue(unix.BPF_JEQ, kind, func(p *program) { p.allow() })
			}
			p.returnErrno(errno)
		}
	}
	p.onCall(unix.SYS_SOCKETPAIR, connected(unix.EPERM))
	if f.passesCallsToSupervisor() {
		p.onCall(unix.SYS_CONNECT, func(p *program) { p.returnAction(unix.SECCOMP_RET_USER_NOTIF) })
	}
	p.onCall(unix.SYS_SOCKET, func(p *program) {
		p.loadArg(0)
		if f.passesCallsToSupervisor() {
			p.ifTrue(unix.BPF_JEQ, unix.AF_UNIX, connected(unix.EPROTONOSUPPORT))
		}
		if f.level == L1 && !f.network {
			p.returnErrno(unix.EPERM)
			return
		}
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
			p.ifTrue(unix.BPF_JEQ, family, func(p *program) { p.allow() })
		}
		p.returnErrno(unix.EAFNOSUPPORT)
	})
}

// restrictCalls installs the filter for this thread and everything cloned from
// it. It returns the descriptor on which the supervisor receives calls, -1 if
// the filter answers all of them. It returns an error on an architecture
// without tables of calls.
func restrictCalls(f filterOptions) (listener int, err error) {
	if AuditArch == 0 {
		return -1, fmt.Errorf("no table of system calls for %s", runtime.GOARCH)
	}
	if !f.passesCallsToSupervisor() && !f.undo && !f.watch {
		_, err := installFilter(buildFilter(f), 0)
		return -1, err
	}
	// After the supervisor has received a call, only a fatal signal ends the
	// caller's wait. On older kernels every signal does, and the call is then
	// repeated.
	listener, err = installFilter(buildFilter(f), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		listener, err = installFilter(buildFilter(f), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	return listener, err
}

// installFilter installs a filter with flags (SECCOMP_FILTER_FLAG_…) for this
// thread. It returns the listener, if flags ask for one, else 0.
func installFilter(program []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return -1, os.NewSyscallError("seccomp", errno)
	}
	return int(fd), nil
}
