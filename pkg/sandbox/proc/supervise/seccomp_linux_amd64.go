package supervise

import "golang.org/x/sys/unix"

const (
	// AuditArch is the kernel's number for this architecture (linux/audit.h).
	AuditArch = unix.AUDIT_ARCH_X86_64
	// X32Bit marks the call numbers of the x32 ABI, which the other checks
	// would not match.
	X32Bit = 0x40000000
)

// archCallsWithEPERM lists the calls of this architecture that fail with EPERM,
// in addition to callsWithEPERM.
var archCallsWithEPERM = [...]uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD}

// modeCalls lists the calls of this architecture that set the mode of a file.
var modeCalls = [...]modeCall{
	{number: unix.SYS_OPENAT, flags: 2, mode: 3},
	{number: unix.SYS_OPEN, flags: 1, mode: 2},
	{number: unix.SYS_CREAT, mode: 1},
	{number: unix.SYS_MKNOD, mode: 1},
	{number: unix.SYS_MKNODAT, mode: 2},
	{number: unix.SYS_CHMOD, mode: 1, chmod: true},
	{number: unix.SYS_FCHMOD, mode: 1, chmod: true},
	{number: unix.SYS_FCHMODAT, mode: 2, chmod: true},
	{number: unix.SYS_FCHMODAT2, mode: 2, chmod: true},
}

// sysChmod is the number of chmod(2), -1 on an architecture without it.
const sysChmod = unix.SYS_CHMOD

// pathCalls lists the calls that look at a path and change no file.
var pathCalls = [...]pathCall{
	{number: unix.SYS_STAT, dir: noArg, path: 0},
	{number: unix.SYS_LSTAT, dir: noArg, path: 0},
	{number: unix.SYS_NEWFSTATAT, dir: 0, path: 1},
	{number: unix.SYS_STATX, dir: 0, path: 1},
	{number: unix.SYS_ACCESS, dir: noArg, path: 0},
	{number: unix.SYS_FACCESSAT, dir: 0, path: 1},
	{number: unix.SYS_FACCESSAT2, dir: 0, path: 1},
	{number: unix.SYS_READLINK, dir: noArg, path: 0},
	{number: unix.SYS_READLINKAT, dir: 0, path: 1},
	{number: unix.SYS_EXECVE, dir: noArg, path: 0},
	{number: unix.SYS_EXECVEAT, dir: 0, path: 1},
	{number: unix.SYS_CHDIR, dir: noArg, path: 0},
}

// undoCalls lists the calls that change files.
var undoCalls = [...]undoCall{
	{number: unix.SYS_OPENAT, effect: effectOpen, dir: 0, path: 1, flags: 2},
	{number: unix.SYS_OPEN, effect: effectOpen, dir: noArg, path: 0, flags: 1},
	{number: unix.SYS_CREAT, effect: effectOpen, dir: noArg, path: 0, flags: noArg, createsForSure: true},
	{number: unix.SYS_UNLINK, effect: effectRemove, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_UNLINKAT, effect: effectRemove, dir: 0, path: 1, flags: 2},
	{number: unix.SYS_RMDIR, effect: effectRemoveDir, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_RENAME, effect: effectRename, dir: noArg, path: 0, toDir: noArg, to: 1, flags: noArg},
	{number: unix.SYS_RENAMEAT, effect: effectRename, dir: 0, path: 1, toDir: 2, to: 3, flags: noArg},
	{number: unix.SYS_RENAMEAT2, effect: effectRename, dir: 0, path: 1, toDir: 2, to: 3, flags: 4},
	{number: unix.SYS_LINK, effect: effectLink, dir: noArg, path: 0, toDir: noArg, to: 1, flags: noArg},
	{number: unix.SYS_LINKAT, effect: effectLink, dir: 0, path: 1, toDir: 2, to: 3, flags: 4},
	{number: unix.SYS_SYMLINK, effect: effectCreate, dir: noArg, path: 1, flags: noArg},
	{number: unix.SYS_SYMLINKAT, effect: effectCreate, dir: 1, path: 2, flags: noArg},
	{number: unix.SYS_MKDIR, effect: effectCreate, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_MKDIRAT, effect: effectCreate, dir: 0, path: 1, flags: noArg},
	{number: unix.SYS_MKNOD, effect: effectCreate, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_MKNODAT, effect: effectCreate, dir: 0, path: 1, flags: noArg},
	{number: unix.SYS_TRUNCATE, effect: effectTruncate, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_CHMOD, effect: effectAdjust, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_FCHMOD, effect: effectAdjustOpen, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_FCHMODAT, effect: effectAdjust, dir: 0, path: 1, flags: noArg},
	{number: unix.SYS_FCHMODAT2, effect: effectAdjust, dir: 0, path: 1, flags: 3},
	{number: unix.SYS_CHOWN, effect: effectAdjust, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_LCHOWN, effect: effectAdjust, dir: noArg, path: 0, flags: noArg, doesNotFollow: true},
	{number: unix.SYS_FCHOWN, effect: effectAdjustOpen, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_FCHOWNAT, effect: effectAdjust, dir: 0, path: 1, flags: 4},
	{number: unix.SYS_UTIME, effect: effectAdjust, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_UTIMES, effect: effectAdjust, dir: noArg, path: 0, flags: noArg},
	{number: unix.SYS_FUTIMESAT, effect: effectAdjust, dir: 0, path: 1, flags: noArg},
	{number: unix.SYS_UTIMENSAT, effect: effectAdjust, dir: 0, path: 1, flags: 3},
	{number: unix.SYS_BIND, effect: effectBind, dir: noArg, path: 0, flags: noArg},
}
