package main

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// rootArg returns the value of mcp-host's flag --root for a root.
func rootArg(r sandbox.Root) string {
	if r.ReadOnly {
		return r.Path + ":ro"
	}
	return r.Path
}

// hostArgs returns the command line arguments of mcp-host. Without roots, it
// gets no --root.
func (d *dispatcher) hostArgs(roots []sandbox.Root) []string {
	args := []string{"agent", "--json"}
	if d.config.Config != "" {
		args = append(args, "--config", d.config.Config)
	}
	args = append(append(args, "--state", d.stateDir), d.allowFlags...)
	for _, r := range roots {
		args = append(args, "--root", rootArg(r))
	}
	return args
}

// isHostSocket reports whether name can be the private socket of a host with
// the same state directory. An agent must not be sent to any other socket.
func (d *dispatcher) isHostSocket(name string) bool {
	return !d.tempState && filepath.IsAbs(name) && filepath.Dir(name) == filepath.Join(d.stateDir, "hosts")
}
