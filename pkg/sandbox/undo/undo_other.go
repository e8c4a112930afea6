//go:build !linux

package undo

import "github.com/toolroom-mcp/toolroom/pkg/toolerr"

func lock(string) (func(), error) { return func() {}, nil }

// Undo returns SANDBOX_UNAVAILABLE: changes are recorded only on Linux.
func (r *Record) Undo(func(string) string) (Report, error) {
	return Report{}, toolerr.New(toolerr.SandboxUnavailable, "changes of commands are recorded on Linux only")
}
