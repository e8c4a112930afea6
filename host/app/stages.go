package app

import (
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/pipeline/breaker"
	"github.com/toolroom-mcp/toolroom/host/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/pipeline/timeout"
)

// way is the stages of every call, with those that hold something.
type way struct {
	cfg     config.Stages
	stats   *stats.Recorder
	audit   *audit.Log // nil: nothing is written down
	limiter *limit.Limiter
	breaker *breaker.Breaker
}

func newWay(cfg config.Config) (way, error) {
	s := stagesOf(cfg)
	if err := s.Validate(); err != nil {
		return way{}, err
	}
	w := way{cfg: s, stats: &stats.Recorder{}, limiter: limit.New(s.Limit), breaker: breaker.New(s.Breaker)}
	if !s.Audit.Off && s.Audit.Dir != "" {
		w.audit = audit.New(s.Audit, audit.NewFiles(s.Audit))
	}
	return w, nil
}

// stages returns the way of a call, the outermost stage first:
//
//   - stats sees what the caller sees: every call, how long it took with all
//     waiting, and what came back.
//   - audit comes next, so that no call is refused, cached or cut without
//     having been written down.
//   - limit is outside timeout, since the time in the queue is not the tool's;
//     the queue has a bound of its own, and the caller's deadline holds for it.
//   - timeout is outside retry: it is for the call, however often it is sent.
//   - retry is outside breaker, so that it stops when the breaker opens.
func (w way) stages() []call.Stage {
	stages := []call.Stage{w.stats.Stage}
	if w.audit != nil {
		stages = append(stages, w.audit.Stage)
	}
	return append(stages,
		w.limiter.Stage,
		timeout.New(w.cfg.Timeout),
		retry.New(w.cfg.Retry),
		w.breaker.Stage,
	)
}

func (w way) close() {
	if w.audit != nil {
		w.audit.Close() //nolint:errcheck // Audit tells
	}
}

// Stats returns what was counted of every tool since the host began.
func (a *App) Stats() []stats.Row { return a.way.stats.Rows() }

// Loads returns how busy the servers are that were called.
func (a *App) Loads() []limit.Load { return a.way.limiter.Loads() }

// Audit returns how many events could not be written to the audit log, and
// why not the last ones; nil: the last ones were, or there is no log.
func (a *App) Audit() (lost int, err error) {
	if a.way.audit == nil {
		return 0, nil
	}
	return a.way.audit.Lost()
}

// stagesOf adds to the stages' Configs what follows from the rest: where
// state is kept, and what is said of single servers.
func stagesOf(cfg config.Config) config.Stages {
	s := cfg.Stages
	if s.Audit.Dir == "" && cfg.State != "" {
		s.Audit.Dir = AuditDir(cfg.State)
	}
	limits, timeouts := map[string]int{}, map[string]time.Duration{}
	say := func(spec dialect.Server) {
		if spec.MaxConcurrent != 0 {
			limits[spec.Name] = spec.MaxConcurrent
		}
		if spec.Timeout != 0 {
			timeouts[spec.Name] = spec.Timeout
		}
	}
	for _, server := range cfg.Servers {
		say(server.Spec)
		if server.Bundled && server.Name == "dispatch_agent" {
			s.Limit.Nested = append(slices.Clone(s.Limit.Nested), server.Name)
		}
	}
	for _, spec := range cfg.Remote {
		say(spec)
	}
	maps.Copy(limits, s.Limit.Servers)
	maps.Copy(timeouts, s.Timeout.Servers)
	s.Limit.Servers, s.Timeout.Servers = limits, timeouts
	return s
}

// AuditDir is where the audit log of a state directory is.
func AuditDir(state string) string { return filepath.Join(state, "audit") }
