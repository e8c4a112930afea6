package config

import (
	"errors"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/confine"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// resolveSandbox makes the paths of a server's sandbox absolute; see resolveIn. It returns
// an error for an invalid setting, or if the server cannot be confined: over HTTP or in a
// container.
func resolveSandbox(spec *dialect.Server, from []string) error {
	s := &spec.Sandbox
	if !spec.CanBeConfined() && len(s.Sockets) == 0 {
		return errors.New("a sandbox cannot confine a server over HTTP or in a container: leave it out; for a container, use the options of docker run")
	}
	for _, list := range [][]string{s.Write, s.Read, s.Sockets} {
		for i, path := range list {
			list[i] = resolveIn(from, path)
		}
	}
	return Confinement(*s).Validate()
}

// Confinement returns the settings of a server's sandbox, whose paths are absolute.
func Confinement(s dialect.Sandbox) confine.Settings {
	return confine.Settings{
		Level: proc.Level(s.Level), Write: s.Write, Read: s.Read, Network: s.Network, Env: s.Env, Sockets: s.Sockets,
		Limits: proc.Limits{Memory: s.Memory, CPUPercent: int64(s.CPU), FileBytes: s.FileSize, Processes: int64(s.Processes), Files: int64(s.OpenFiles)},
	}
}
