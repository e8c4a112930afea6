//go:build !linux

package undo

import (
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// isSameVersion returns false: there are no records on this system.
func isSameVersion(fs.FileInfo, *supervise.UndoState) bool { return false }

// lockLog does nothing: there are no records on this system.
func lockLog(string) (func(), error) { return func() {}, nil }

// Undo returns SANDBOX_UNAVAILABLE: changes are recorded only on Linux.
func (r *Record) Undo(func(string) string) (Report, error) {
	return Report{}, toolerr.New(toolerr.SandboxUnavailable, "changes of commands are recorded on Linux only")
}
