//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// group is a process group; its id is that of the program that leads it.
type group struct{ id int }

func newGroup(p *os.Process) (group, error) { return group{p.Pid}, nil }

// terminate asks every process of the group to end.
func (g group) terminate() { g.signal(syscall.SIGTERM) }

// kill ends every process of the group.
func (g group) kill() { g.signal(syscall.SIGKILL) }

// signal fails only when nobody is left in the group.
func (g group) signal(s syscall.Signal) {
	if g.id > 1 {
		syscall.Kill(-g.id, s) //nolint:errcheck // ESRCH is what is wanted
	}
}

func (g group) release() {}

// killGroup ends a group that is known by its id alone.
func killGroup(id int) { group{id}.kill() }

// detached keeps the guard out of reach of the terminal's signals.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
