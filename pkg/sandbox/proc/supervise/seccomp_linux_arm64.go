package supervise

import "golang.org/x/sys/unix"

const (
	// AuditArch is the kernel's number for this architecture (linux/audit.h).
	AuditArch = unix.AUDIT_ARCH_AARCH64
	// X32Bit would mark the call numbers of the x32 ABI, which exists only on
	// amd64.
	X32Bit = 0xffffffff // matches no call
)

// archCallsWithEPERM lists the calls of this architecture that fail with EPERM,
// in addition to callsWithEPERM.
var archCallsWithEPERM = [...]uint32{unix.SYS_KEXEC_FILE_LOAD}

// modeCalls lists the calls of this architecture that set the mode of a file.
var modeCalls = [...]modeCall{
	{number: unix.SYS_OPENAT, flags: 2, mode: 3},
	{number: unix.SYS_MKNODAT, mode: 2},
	{number: unix.SYS_FCHMOD, mode: 1, chmod: true},
	{number: unix.SYS_FCHMODAT, mode: 2, chmod: true},
	{number: unix.SYS_FCHMODAT2, mode: 2, chmod: true},
}

// sysChmod is the number of chmod(2), -1 on an architecture without it.
const sysChmod = -1

// pathCalls lists the calls that look at a path and change no file.
var pathCalls = [...]pathCall{
	{number: unix.SYS_FSTATAT, dir: 0, path: 1},
	{number: unix.SYS_STATX, dir: 0, path: 1},
	{number: unix.SYS_FACCESSAT, dir: 0, path: 1},
	{number: unix.SYS_FACCESSAT2, dir: 0, path: 1},
	{number: unix.SYS_READLINKAT, dir: 0, path: 1},
	{number: unix.SYS_EXECVE, dir: noArg, path: 0},
	{number: unix.SYS_EXECVEAT, dir: 0, path: 1},
	{number: unix.SYS_CHDIR, dir: noArg, path: 0},
}

// undoCalls lists the calls that change files.
var undoCalls = [...]undoCall{
	{number: unix.SYS_OPENAT, effect: effectOpen, dir: 0, path: 1, flags: 2},
	{number: unix.SYS_UNLINKAT, effect: effectRemove, dir: 0, path: 1, flags: 2},
	{number: unix.SYS_RENAMEAT, effect: effectRename, dir: 0, path: 1, toDir: 2, to: 3, flags: noArg},
	{number: unix.SYS_RENAMEAT2, effect: effectRename, dir: 0, path: 1, toDir: 2, to: 3, flags: 4},
	{number: unix.SYS_LINKAT, effect: effectLink, dir: 0, path: 1, toDir: 2, to: 3, flags: 4},
	{number: unix.SYS_SYMLINKAT, effect: effectCreate, dir: 1, path: 2, flags: noArg},
	{number: unix.SYS_MKDIRAT, effect: effectCreate, dir: 0, path: 1, flags: noArg},
	{number: unix.SYS_MKNODAT, effect: effectCreate, dir: 0, path: 1, flags: noArg},
	{number: unix.SYS_TRUNCATE, effect: effectTruncate, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_FCHMOD, effect: effectAdjustOpen, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_FCHMODAT, effect: effectAdjust, dir: 0, path: 1, flags: noArg},
	{number: unix.SYS_FCHMODAT2, effect: effectAdjust, dir: 0, path: 1, flags: 3},
	{number: unix.SYS_FCHOWN, effect: effectAdjustOpen, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_FCHOWNAT, effect: effectAdjust, dir: 0, path: 1, flags: 4},
	{number: unix.SYS_UTIMENSAT, effect: effectAdjust, dir: 0, path: 1, flags: 3},
	{number: unix.SYS_BIND, effect: effectBind, dir: noArg, path: 0, flags: noArg},
}
