//go:build linux && !amd64 && !arm64

package proc

const (
	auditArch = 0
	x32Bit    = 0xffffffff
)

var forbiddenHere = [...]uint32{}
