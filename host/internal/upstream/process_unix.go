//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// group is a process group; its id is the process id of its leader.
type group struct{ id int }

// newGroup returns the process group of a started process.
func newGroup(p *os.Process) (group, error) { return group{p.Pid}, nil }

// terminate sends SIGTERM to all processes of the group.
func (g group) terminate() { g.signal(syscall.SIGTERM) }

// kill kills all processes of the group.
func (g group) kill() { g.signal(syscall.SIGKILL) }

// signal fails only if the group has no process.
func (g group) signal(s syscall.Signal) {
	if g.id > 1 {
		syscall.Kill(-g.id, s) //nolint:errcheck // ESRCH means that the group has ended
	}
}

// release does nothing: a process group needs no release.
func (g group) release() {}

// killGroup kills a group by its id.
func killGroup(id int) { group{id}.kill() }

// detachedAttributes returns the attributes for a process that the terminal's signals do
// not reach: the guard.
func detachedAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
