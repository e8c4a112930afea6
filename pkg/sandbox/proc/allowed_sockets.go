package proc

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// allowedSockets returns Config.Sockets with links resolved at L2, nil at other
// levels. Sockets that do not exist are left out. It runs for each command,
// since services make their sockets again when they restart.
func (r *Runner) allowedSockets(level Level) (paths []string) {
	if level != L2 {
		return nil
	}
	for _, path := range r.config.Sockets {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			paths = append(paths, resolved)
		}
	}
	return paths
}

// checkSockets returns a SANDBOX_UNAVAILABLE error if Config.Sockets are set
// and commands at this level cannot connect to them.
func (r *Runner) checkSockets(level Level) error {
	if len(r.config.Sockets) > 0 && (level == L1 || level == L2 && r.noUnixSockets) {
		return toolerr.New(toolerr.SandboxUnavailable, "--allow-socket needs level L2 with unix sockets, which this machine does not enforce: leave it out")
	}
	return nil
}
