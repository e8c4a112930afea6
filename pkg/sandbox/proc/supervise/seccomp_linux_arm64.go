package supervise

import "golang.org/x/sys/unix"

const (
	// AuditArch is what the kernel calls this architecture (linux/audit.h).
	AuditArch = unix.AUDIT_ARCH_AARCH64
	// X32Bit marks the numbers of the x32 ABI.
	X32Bit = 0xffffffff // there is none
)

var forbiddenHere = [...]uint32{unix.SYS_KEXEC_FILE_LOAD}
