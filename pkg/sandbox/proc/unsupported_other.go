//go:build !linux && !darwin && !windows

package proc

import (
	"errors"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// On other systems nothing is started: a command could outlive its server or
// run unconfined, which this package promises to prevent.

var errUnsupported = errors.New("this system has no supervisor for commands yet")

// startSupervisor returns errUnsupported.
func startSupervisor(Level, bool, *supervise.Spec) (*supervisor, error) { return nil, errUnsupported }

// readMountTable returns "".
func readMountTable(Level) string { return "" }

// outputPipe returns a pipe of the system's own size.
func outputPipe() (read, write *os.File, err error) { return os.Pipe() }

// drain does nothing.
func drain(*os.File, []byte, func([]byte)) {}

// sendFiles returns errUnsupported.
func (s *supervisor) sendFiles([]byte, []*os.File) error { return errUnsupported }

// canRead reports whether the server can open a file for reading.
func canRead(path string) bool {
	f, err := os.Open(path)
	closeAll(f)
	return err == nil
}

// isOwnFile returns false: the owner is not looked up on this system.
func isOwnFile(os.FileInfo) bool { return false }

// setExitStatus does nothing.
func (p *Process) setExitStatus(int) {}

// runProbeRole returns the exit code 2: this program has no roles here.
func runProbeRole(string) int { return 2 }

// selfPath is the path of the running program.
func selfPath() (string, error) { return os.Executable() }

// openNonblock is 0: opening a regular file does not wait.
const openNonblock = 0

// prologuePath returns "": nothing is started.
func prologuePath(int) string { return "" }
