//go:build linux && !amd64 && !arm64

package supervise

const (
	// AuditArch is what the kernel calls this architecture (linux/audit.h).
	AuditArch = 0
	// X32Bit marks the numbers of the x32 ABI.
	X32Bit = 0xffffffff
)

var forbiddenHere = [...]uint32{}

var systemV = [...]uint32{}

var modeCalls = [...]modeCall{}

// sysChmod is chmod(2), -1 where there is none.
const sysChmod = -1

var undoCalls = [...]undoCall{}
