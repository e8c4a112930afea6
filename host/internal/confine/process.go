package confine

import (
	"errors"
	"fmt"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// Process is a running confined program.
type Process struct {
	*proc.Process
	level   proc.Level
	network string
	closed  chan struct{} // closed when all its processes have ended
	result  proc.Result   // final once closed is closed
	propose func(proc.Result) Proposal
}

// Proposal waits for the end of a watched program, and returns the settings that would
// give it what it was refused.
func (p *Process) Proposal() Proposal {
	<-p.closed
	return p.propose(p.result)
}

// Wait waits for the end of the program and of its descendants. It returns an error that says
// how the program ended, unless with status 0. It may be called several times.
func (p *Process) Wait() error {
	<-p.closed
	switch r := p.result; {
	case r.Ending == proc.OverMemory:
		return errors.New("it used more memory than its sandbox allows (sandbox.memory)")
	case r.Ending == proc.Lost:
		return errors.New("the supervisor of its sandbox was killed")
	case r.Signal != 0:
		return fmt.Errorf("signal: %v", r.Signal)
	case r.ExitCode != 0:
		return fmt.Errorf("exit status %d", r.ExitCode)
	}
	return nil
}

// Network returns the network access in the syntax of Settings.Network; never "".
func (p *Process) Network() string { return p.network }

// Sandbox describes the confinement: its level and its network access.
func (p *Process) Sandbox() string { return fmt.Sprintf("%s, network %s", p.level, p.network) }

// describeRefusal describes a refused host, with the setting that would allow it.
func describeRefusal(r egress.Refusal) string {
	text := fmt.Sprintf("network: %s %s", r.Host, r.Why)
	if r.Opens != "" {
		text += "; " + howToAllow(r.Opens)
	}
	return text
}

// Refused returns descriptions of the program's refused accesses so far, each with the setting
// that would allow it. After the end of the program, it includes the changes that were
// reverted.
func (p *Process) Refused() (refused []string) {
	hosts, more := p.RefusedHosts()
	for _, host := range hosts {
		refused = append(refused, describeRefusal(host))
	}
	if more > 0 {
		refused = append(refused, fmt.Sprintf("network: %d further requests", more))
	}
	select {
	case <-p.closed:
		for _, path := range p.result.Reverted {
			refused = append(refused, "its change of "+path+" was reverted: another program would run or read it")
		}
		refused = append(refused, p.result.Unguarded...)
	default:
	}
	return refused
}
