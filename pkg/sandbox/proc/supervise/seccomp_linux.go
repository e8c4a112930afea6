package supervise

import (
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
var absent = [...]uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}

// sysOpenTreeAttr is open_tree_attr(2), which x/sys does not name yet.
const sysOpenTreeAttr = 467

// newNamespaces are the flags of clone that make a name space.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// sockets are the address families that may be used. There is no other way to
// say it: families such as vsock belong to no network name space.
func sockets(level Level, network bool) []uint32 {
	switch {
	case level == L2:
		return []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	case network: // without AF_UNIX, behind which the user's other services are
		return []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	}
	return nil
}

// sockType are the bits of a socket's type without its flags (linux/net.h).
const sockType = 0xf

// filter builds the program.
func filter(level Level, network bool) []unix.SockFilter {
	var p []unix.SockFilter
	load := func(offset uint32) {
		p = append(p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
	}
	answer := func(action uint32) {
		p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
	}
	// unless skips n instructions where the test of the loaded value fails.
	unless := func(test uint16, k uint32, n uint8) {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jf: n, K: k})
	}
	fail := func(errno unix.Errno) { answer(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

	load(offsetArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jt: 1, K: AuditArch})
	answer(unix.SECCOMP_RET_KILL_PROCESS)
	load(offsetNumber)
	unless(unix.BPF_JGE, X32Bit, 1)
	fail(unix.ENOSYS)
	for _, number := range absent {
		unless(unix.BPF_JEQ, number, 1)
		fail(unix.ENOSYS)
	}
	for _, number := range append(forbidden[:], forbiddenHere[:]...) {
		unless(unix.BPF_JEQ, number, 1)
		fail(unix.EPERM)
	}
	unless(unix.BPF_JEQ, unix.SYS_CLONE, 4)
	load(offsetArgs)
	unless(unix.BPF_JSET, newNamespaces, 1)
	fail(unix.EPERM)
	answer(unix.SECCOMP_RET_ALLOW)
	unless(unix.BPF_JEQ, unix.SYS_IOCTL, 6)
	load(offsetArgs + 8)
	unless(unix.BPF_JEQ, unix.TIOCSTI, 1)
	fail(unix.EPERM)
	unless(unix.BPF_JEQ, unix.TIOCLINUX, 1)
	fail(unix.EPERM)
	answer(unix.SECCOMP_RET_ALLOW)

	if level == L1 { // without a pid name space those of the same user are in reach
		unless(unix.BPF_JEQ, unix.SYS_PRLIMIT64, 4)
		load(offsetArgs)
		unless(unix.BPF_JEQ, 0, 1)
		answer(unix.SECCOMP_RET_ALLOW)
		fail(unix.EPERM)
		unless(unix.BPF_JEQ, unix.SYS_SETPRIORITY, 6)
		load(offsetArgs)
		unless(unix.BPF_JEQ, unix.PRIO_PROCESS, 3)
		load(offsetArgs + 8)
		unless(unix.BPF_JEQ, 0, 1)
		answer(unix.SECCOMP_RET_ALLOW)
		fail(unix.EPERM)
		// Half a pair of datagram sockets can be sent from, and connected, to
		// any socket that has a name; the two other kinds stay a pair.
		unless(unix.BPF_JEQ, unix.SYS_SOCKETPAIR, 7)
		load(offsetArgs + 8)
		p = append(p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: sockType})
		unless(unix.BPF_JEQ, unix.SOCK_STREAM, 1)
		answer(unix.SECCOMP_RET_ALLOW)
		unless(unix.BPF_JEQ, unix.SOCK_SEQPACKET, 1)
		answer(unix.SECCOMP_RET_ALLOW)
		fail(unix.EPERM)
	}

	families := sockets(level, network)
	unless(unix.BPF_JEQ, unix.SYS_SOCKET, uint8(2+2*len(families)))
	load(offsetArgs)
	for _, family := range families {
		unless(unix.BPF_JEQ, family, 1)
		answer(unix.SECCOMP_RET_ALLOW)
	}
	if families == nil {
		fail(unix.EPERM)
	} else {
		fail(unix.EAFNOSUPPORT)
	}
	answer(unix.SECCOMP_RET_ALLOW)
	return p
}

// restrictCalls filters the system calls of this thread and of what it clones.
func restrictCalls(level Level, network bool) error {
	if AuditArch == 0 {
		return fmt.Errorf("no table of system calls for %s", runtime.GOARCH)
	}
	program := filter(level, network)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
