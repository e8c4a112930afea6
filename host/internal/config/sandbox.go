package config

import (
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/confine"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// resolveSandbox makes the paths of a server's sandbox absolute.
func resolveSandbox(s *dialect.Sandbox, from []string) error {
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
		Limits: proc.Limits{Memory: s.Memory, FileBytes: s.FileSize, Processes: int64(s.Processes), Files: int64(s.OpenFiles)},
	}
}
