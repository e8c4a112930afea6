package proc

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// sockets resolves Config.Sockets, which links may lead to. It is done for
// each command: services make theirs again when they restart.
func (r *Runner) sockets(level Level) (paths []string) {
	if level != L2 {
		return nil
	}
	for _, path := range r.config.Sockets {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			paths = append(paths, real)
		}
	}
	return paths
}

// checkSockets refuses to run where Config.Sockets cannot be opened.
func (r *Runner) checkSockets(level Level) error {
	if len(r.config.Sockets) > 0 && (level == L1 || level == L2 && r.noUnix) {
		return toolerr.New(toolerr.SandboxUnavailable, "--allow-socket needs level L2 with unix sockets, which this machine does not enforce: leave it out")
	}
	return nil
}
