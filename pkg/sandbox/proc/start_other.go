//go:build !linux

package proc

import (
	"os"
)

// Elsewhere nothing is started: a command that might outlive its server, or
// that nothing confines, is not what this package promises.

func spawn(*spec, *os.File, []*os.File) (*supervisor, error) { return nil, errUnsupported }

func (p *Process) exited(int) {}

func killMarked(string) int { return 0 }

func runRole(string, []string) int { return 2 }
