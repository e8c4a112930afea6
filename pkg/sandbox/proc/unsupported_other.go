//go:build !linux

package proc

import (
	"errors"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// On other systems nothing is started: a command could outlive its server or
// run unconfined, which this package promises to prevent.

// errUnsupported is the error of starting a command on a system other than
// Linux.
var errUnsupported = errors.New("this system has no supervisor for commands yet")

// startSupervisor returns errUnsupported: only Linux has a supervisor.
func startSupervisor(Level, bool, *supervise.Spec) (*supervisor, error) { return nil, errUnsupported }

// readMountTable returns "".
func readMountTable(Level) string { return "" }

// outputPipe returns a pipe of the system's own size.
func outputPipe() (read, write *os.File, err error) { return os.Pipe() }

// drain passes the content of a pipe to take without waiting for more. It reads
// at most pipeSize bytes, since another process may still be writing. buf is
// its buffer.
func drain(*os.File, []byte, func([]byte)) {}

// sendFiles returns errUnsupported.
func (s *supervisor) sendFiles([]byte, []*os.File) error { return errUnsupported }

// canRead reports whether the server itself can open the file at path for
// reading.
func canRead(path string) bool {
	f, err := os.Open(path)
	closeAll(f)
	return err == nil
}

// isOwnFile returns false: the owner is not looked up on this system.
func isOwnFile(os.FileInfo) bool { return false }

// setExitStatus does nothing.
func (p *Process) setExitStatus(int) {}

// newEgressSocketPair returns errUnsupported.
func newEgressSocketPair() (*egressSocketPair, error) { return nil, errUnsupported }

// receiveListener returns errUnsupported.
func (l *egressSocketPair) receiveListener() (*os.File, error) { return nil, errUnsupported }

// runProbeRole returns the exit code, 2 for another role 2: this program has no
// roles here.
func runProbeRole(string) int { return 2 }

// readReport returns nil.
func readReport(string) []byte { return nil }

// sealedFile returns errUnsupported.
func sealedFile(string) (*os.File, error) { return nil, errUnsupported }
