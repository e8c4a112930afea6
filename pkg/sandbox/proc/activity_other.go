//go:build !linux

package proc

// Activity returns what the command's processes do, which only Linux tells.
func (p *Process) Activity() Activity { return Activity{} }
