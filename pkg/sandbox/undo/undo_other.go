//go:build !linux

package undo

import "github.com/toolroom-mcp/toolroom/pkg/toolerr"

func lock(string) (func(), error) { return func() {}, nil }

// Undo takes back what the command changed: on Linux only.
func (r *Record) Undo(func(string) string) (Report, error) {
	return Report{}, toolerr.New(toolerr.SandboxUnavailable, "changes of commands are recorded on Linux only")
}
