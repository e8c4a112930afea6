package supervise

import "golang.org/x/sys/unix"

const (
	// AuditArch is what the kernel calls this architecture (linux/audit.h).
	AuditArch = unix.AUDIT_ARCH_X86_64
	// X32Bit marks the numbers of the x32 ABI, which would pass all others.
	X32Bit = 0x40000000
)

var forbiddenHere = [...]uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD}
