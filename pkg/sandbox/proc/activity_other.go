//go:build !linux

package proc

// Activity returns the zero value: only Linux shows the state of processes.
func (p *Process) Activity() Activity { return Activity{} }
