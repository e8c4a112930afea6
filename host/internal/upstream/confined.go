package upstream

import (
	"os"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
)

// ConfinedProgram is a program to start in a sandbox. Its environment is complete.
type ConfinedProgram struct {
	Command []string
	Dir     string
	Env     []string
	Stdio   [3]*os.File   // standard input, output and error, which the caller closes
	Grace   time.Duration // between SIGTERM and SIGKILL
}

// ConfinedProcess is a started ConfinedProgram. All its descendants end with it, and
// all of them end with the host.
type ConfinedProcess interface {
	// PID returns the id of a process that lives as long as the program.
	PID() int
	// Stop ends the program by SIGTERM and, after the grace, SIGKILL. It does not wait.
	Stop()
	// Wait waits for the end of all processes. The error says how the program ended;
	// nil: exit status 0.
	Wait() error
	// Sandbox describes the confinement, such as "L2, network off".
	Sandbox() string
	// Refused returns what the program was refused so far, each with the setting that
	// would allow it.
	Refused() []string
}

// startConfined starts a program in its sandbox. If files have changed, it stops the
// program and returns an error.
func (p *process) startConfined(cfg Config, files *trust.HeldFiles) (err error) {
	stdio := [3]*os.File{}
	for i, f := range []any{p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr} {
		stdio[i] = f.(*os.File) //nolint:errcheck // newProcess sets files
	}
	p.confined, err = cfg.Confine(ConfinedProgram{Command: cfg.Command, Dir: cfg.Dir, Env: p.cmd.Env, Grace: cfg.TermGrace, Stdio: stdio})
	if err != nil {
		return err
	}
	if err = files.Recheck(); err != nil {
		p.confined.Stop()
	}
	return err
}
