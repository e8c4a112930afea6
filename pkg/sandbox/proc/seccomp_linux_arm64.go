package proc

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0xffffffff // there is none
)

var forbiddenHere = [...]uint32{unix.SYS_KEXEC_FILE_LOAD}
