//go:build linux && !amd64 && !arm64

package supervise

const (
	// AuditArch is the kernel's number for this architecture (linux/audit.h),
	// 0 for an architecture without a table of calls.
	AuditArch = 0
	// X32Bit would mark the call numbers of the x32 ABI, which exists only on
	// amd64.
	X32Bit = 0xffffffff
)

// archCallsWithEPERM lists the calls of this architecture that fail with EPERM,
// in addition to callsWithEPERM.
var archCallsWithEPERM = [...]uint32{}

// systemVCalls and the tables below are empty: there is no filter for this
// architecture.
var systemVCalls = [...]uint32{}

var messageQueueCalls = [...]uint32{}

// modeCalls lists the calls of this architecture that set the mode of a file.
var modeCalls = [...]modeCall{}

// sysChmod is the number of chmod(2), -1 on an architecture without it.
const sysChmod = -1

var (
	undoCalls = [...]undoCall{}
	pathCalls = [...]pathCall{}
)
