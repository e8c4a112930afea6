package app

import (
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/socket"
	"github.com/toolroom-mcp/toolroom/host/upstream"
)

// Joined is the configuration of a host whose only server is another host, entered
// with a token for one call; see package socket. The other one's policy, limits, audit
// and results are all that hold: this one adds nothing, keeps nothing, and knows of its
// own configuration the models and kinds of agents alone.
func Joined(cfg config.Config, name, token string) config.Config {
	joined := config.Config{Dir: cfg.Dir, Version: cfg.Version, Guard: cfg.Guard, Models: cfg.Models, Agents: cfg.Agents, Pins: "off"}
	joined.Servers = []config.Server{{Bundled: true, Config: upstream.Config{
		Name: "host", Serve: socket.Join(name, token), Era: upstream.Legacy, Version: cfg.Version,
	}}}
	s := &joined.Stages
	s.Audit.Off, s.Schemas.ArgumentsOff, s.Schemas.ResultsOff, s.Breaker.Off = true, true, true, true
	s.Retry.Attempts, s.Timeout.Default, s.Spill.MaxResult, s.Limit.Concurrent = 1, -1, -1, -1
	s.Policy.MaxIdenticalCalls, s.Policy.MaxRounds = -1, -1
	return joined
}
