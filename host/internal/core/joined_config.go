package core

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// JoinedConfig returns the configuration of a host whose only server is another host.
// It connects with a token for one call (see package control). The other host applies
// its policy, limits and audit, and its results are passed on. This host adds nothing
// and stores nothing; it uses only the models and kinds of agents of its
// configuration.
func JoinedConfig(cfg config.Config, name, token string) config.Config {
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

// pendingError returns an error if a result of the other host says that the call waits
// for a decision; nil otherwise. Agents cannot wait for calls that the caller of the
// other host runs itself.
func pendingError(res *call.Result) error {
	if !res.IsError() {
		return nil
	}
	var r struct {
		Meta struct {
			Status  string        `json:"toolroom/status"`
			Pending *call.Pending `json:"toolroom/pending"`
		} `json:"_meta"`
	}
	if json.Unmarshal(res.Raw, &r) != nil || r.Meta.Status != string(call.StatusPending) || r.Meta.Pending == nil || r.Meta.Pending.Reason == agent.ClientTool {
		return nil
	}
	return &call.PendingError{Pending: *r.Meta.Pending}
}
