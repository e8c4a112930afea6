package core

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// Joined is the configuration of a host whose only server is another host, entered
// with a token for one call; see package socket. The other one's policy, limits, audit
// and results are all that hold: this one adds nothing, keeps nothing, and knows of its
// own configuration the models and kinds of agents alone.
func Joined(cfg config.Config, name, token string) config.Config {
	joined := config.Config{Dir: cfg.Dir, Version: cfg.Version, Guard: cfg.Guard, Models: cfg.Models, Agents: cfg.Agents, Pins: "off", Joined: true}
	joined.Servers = []config.Server{{Bundled: true, Config: upstream.Config{
		Name: "host", Serve: control.Join(name, token), Era: upstream.Legacy, Version: cfg.Version,
	}}}
	s := &joined.Stages
	s.Audit.Off, s.Schemas.ArgumentsOff, s.Schemas.ResultsOff, s.Breaker.Off = true, true, true, true
	s.Retry.Attempts, s.Timeout.Default, s.Spill.MaxResult, s.Limit.Concurrent = 1, -1, -1, -1
	s.Policy.MaxIdenticalCalls, s.Policy.MaxRounds = -1, -1
	return joined
}

// waiting is the other host's word that a call waits for somebody's decision, which
// comes as a result; nil: it does not. What the caller of that host is to carry out,
// its agents cannot wait for.
func waiting(res *call.Result) error {
	if !res.IsError() {
		return nil
	}
	var r struct {
		Meta struct {
			Status  string        `json:"toolroom/status"`
			Pending *call.Pending `json:"toolroom/pending"`
		} `json:"_meta"`
	}
	if json.Unmarshal(res.Raw, &r) != nil || r.Meta.Status != string(call.Waiting) || r.Meta.Pending == nil || r.Meta.Pending.Reason == agent.ClientTool {
		return nil
	}
	return &call.PendingError{Pending: *r.Meta.Pending}
}
