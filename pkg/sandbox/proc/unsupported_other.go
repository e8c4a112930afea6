//go:build !linux

package proc

import (
	"errors"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// On other systems nothing is started: a command could outlive its server or
// run unconfined, which this package promises to prevent.

var errUnsupported = errors.New("this system has no supervisor for commands yet")

func startSupervisor(Level, bool, *supervise.Spec) (*supervisor, error) { return nil, errUnsupported }

func readMountTable(Level) string { return "" }

// outputPipe returns a pipe of the system's own size.
func outputPipe() (read, write *os.File, err error) { return os.Pipe() }

func drain(*os.File, []byte, func([]byte)) {}

func (s *supervisor) sendFiles([]byte, []*os.File) error { return errUnsupported }

func canRead(path string) bool {
	f, err := os.Open(path)
	closeAll(f)
	return err == nil
}

func isOwnFile(os.FileInfo) bool { return false }

func (p *Process) setExitStatus(int) {}

func newEgressLink() (*egressLink, error) { return nil, errUnsupported }

func (l *egressLink) receiveListener() (*os.File, error) { return nil, errUnsupported }

func runRole(string) int { return 2 }

func readReport(string) []byte { return nil }

func sealedFile(string) (*os.File, error) { return nil, errUnsupported }
