package proc_test

import (
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// rules let a command use one root.
type rules struct{ root string }

func (r rules) Roots() []sandbox.Root       { return []sandbox.Root{{Path: r.root}} }
func (r rules) Denied(abs string) bool      { return false }
func (r rules) Protected(abs string) string { return "" }

// levels are those that this machine enforces.
func levels(testing.TB) []proc.Level { return []proc.Level{proc.Off} }
