package app

import (
	"maps"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/pipeline/timeout"
)

// stages returns the way of a call, the outermost stage first.
//
//   - limit outside timeout: the time in the queue is not the tool's.
func (a *App) stages() ([]call.Stage, error) {
	s := perServer(a.Config)
	if err := s.Validate(); err != nil {
		return nil, err
	}
	a.limiter = limit.New(s.Limit)
	return []call.Stage{
		a.limiter.Stage,
		timeout.New(s.Timeout),
	}, nil
}

// perServer adds to the stages' Configs what is said of single servers.
func perServer(cfg config.Config) config.Stages {
	s := cfg.Stages
	s.Limit.Servers, s.Timeout.Servers = maps.Clone(s.Limit.Servers), maps.Clone(s.Timeout.Servers)
	for _, server := range cfg.Servers {
		if n := server.Spec.MaxConcurrent; n != 0 {
			if s.Limit.Servers == nil {
				s.Limit.Servers = map[string]int{}
			}
			s.Limit.Servers[server.Name] = n
		}
		if d := server.Spec.Timeout; d != 0 {
			if s.Timeout.Servers == nil {
				s.Timeout.Servers = map[string]time.Duration{}
			}
			s.Timeout.Servers[server.Name] = d
		}
		if server.Bundled && server.Name == "dispatch_agent" {
			s.Limit.Nested = append(slices.Clone(s.Limit.Nested), server.Name)
		}
	}
	return s
}
