package core

import (
	"context"
	"encoding/hex"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/breaker"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/cache"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/spill"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/validate"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// way is the stages of every call, with those that hold something.
type way struct {
	cfg       config.Stages // without what is a function
	stats     *stats.Recorder
	audit     *audit.Log // nil: nothing is written down
	spill     call.Stage
	validator *validate.Validator
	approve   *approve.Stage
	policy    *policy.Policy
	cache     *cache.Cache
	limiter   *limit.Limiter
	breaker   *breaker.Breaker
	unchecked *remarks
	leads     func(server string) bool // around's
}

// around is what the stages are given of the rest of the host.
type around struct {
	version  func(server string) string // tells a server's versions apart
	leads    func(server string) bool   // whether its calls are made of others
	approval func(approve.Config) *approve.Stage
	tell     func(string)
	apart    func(server string) bool // whether each caller has it for itself
	offered  func() []string          // roots of the client; nil: none
}

// nextWay makes the stages, before being those so far, or nil. What holds something is that of before,
// unless its configuration is another: so counts, permits and kept results
// outlive a change of something else. Those of a stage that is another begin
// anew.
func nextWay(cfg config.Config, of around, before *present) (way, error) {
	s := stagesOf(cfg)
	if s.Spill.Dir == nil && cfg.State != "" {
		s.Spill.Dir = spillDir(cfg, of.offered)
	}
	if err := s.Validate(); err != nil {
		return way{}, err
	}
	w := way{cfg: s, stats: &stats.Recorder{}, unchecked: &remarks{}, leads: of.leads}
	w.cfg.Spill.Dir = nil
	w.spill = spill.New(s.Spill)
	if before != nil {
		w = before.way.with(w)
	}
	if w.validator == nil {
		s.Schemas.OnUnusable = func(t *call.Tool, err error) { w.unchecked.add(t.Name + ": " + err.Error()) }
		w.validator = validate.New(s.Schemas)
	}
	if w.policy == nil {
		w.approve = of.approval(s.Approval)
		w.policy = policy.New(s.Policy, w.approve.Stage)
	}
	if w.cache == nil {
		s.Cache.Version, s.Cache.Leads, s.Cache.Apart = of.version, of.leads, of.apart
		w.cache = cache.New(s.Cache)
	}
	if w.limiter == nil {
		w.limiter = limit.New(s.Limit)
	}
	if w.breaker == nil {
		w.breaker = breaker.New(s.Breaker)
	}
	if w.audit == nil && !s.Audit.Off && s.Audit.Dir != "" {
		w.audit = audit.New(s.Audit, audit.NewFiles(s.Audit))
		w.audit.OnFault(func(err error) {
			of.tell("the audit log cannot be written: " + err.Error() + "; see audit in toolroom.yaml, and --state")
		})
	}
	return w, nil
}

// with returns next with those parts of w that are the same.
func (w way) with(next way) way {
	next.stats, next.unchecked = w.stats, w.unchecked
	same := func(a, b any) bool { return reflect.DeepEqual(a, b) }
	if same(w.cfg.Audit, next.cfg.Audit) {
		next.audit = w.audit
	}
	if same(w.cfg.Schemas, next.cfg.Schemas) {
		next.validator = w.validator
	}
	if same(w.cfg.Policy, next.cfg.Policy) && same(w.cfg.Approval, next.cfg.Approval) {
		next.policy, next.approve = w.policy, w.approve
	}
	if same(w.cfg.Cache, next.cfg.Cache) {
		next.cache = w.cache
	}
	if same(w.cfg.Limit, next.cfg.Limit) {
		next.limiter = w.limiter
	}
	if same(w.cfg.Breaker, next.cfg.Breaker) {
		next.breaker = w.breaker
	}
	return next
}

// way returns the stages of the calls that begin now.
func (a *App) way() way { return a.present.Load().way }

// stages returns the way of a call, the outermost stage first:
//
//   - room is about the process and not about the call.
//   - stats sees what the caller sees: every call, how long it took with all
//     waiting, and what came back.
//   - audit comes next, so that no call is refused, answered from the cache or
//     cut without having been written down.
//   - spill is outside cache: what is kept is whole, so that a file's name is
//     never given out after the file was removed.
//   - arguments are validated before policy, whose rules so meet arguments of
//     the shape that their patterns were written for.
//   - policy is outside cache: what a caller may not ask for is not answered
//     from what another asked. Approval belongs to policy: what follows is done
//     once somebody has given it, so that no deadline runs while they think.
//   - cache is outside limit: an answer that is known needs no permit.
//   - results are validated inside cache, so that none is kept that is not
//     what the tool declares, and outside limit, since the server is done.
//   - limit is outside timeout, since the time in the queue is not the tool's;
//     the queue has a bound of its own, and the caller's deadline holds for it.
//   - timeout is outside retry: it is for the call, however often it is sent.
//   - retry is outside breaker, so that it stops when the breaker opens.
func (w way) stages() []call.Stage {
	timed := w.cfg.Timeout
	timed.Leads = w.leads
	stages := []call.Stage{room(), w.stats.Stage}
	if w.audit != nil {
		stages = append(stages, w.audit.Stage)
	}
	return append(stages,
		w.spill,
		w.validator.Arguments,
		w.policy.Stage,
		w.cache.Stage,
		w.validator.Results,
		w.limiter.Stage,
		timeout.New(timed),
		retry.New(w.cfg.Retry),
		w.breaker.Stage,
	)
}

func (w way) close() {
	w.approve.Close()
	if w.audit != nil {
		w.audit.Close() //nolint:errcheck // Audit tells
	}
}

// remarks are the last things that a user might want to know.
type remarks struct {
	mu    sync.Mutex
	lines []string
}

func (r *remarks) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines = append(r.lines, line); len(r.lines) > 100 {
		r.lines = slices.Delete(r.lines, 0, 1)
	}
}

// Unchecked returns which tools' schemas cannot be used to check calls, and
// why, as far as they were called.
func (a *App) Unchecked() []string {
	r := a.way().unchecked
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// serverVersion tells what answers the calls of a server's tools apart: how it
// is configured, with what its calls lead to, and what it calls itself once it
// runs.
func (a *App) serverVersion(name string) string {
	now := a.present.Load()
	version := hex.EncodeToString(now.behind(name).sum)
	if p, ok := now.byName[name]; ok {
		version += " " + p.server.Status().Server + " " + strings.Join(a.roots.get(), " ")
	} else if t, ok := now.declared[name]; ok {
		version += " " + t.Version()
	}
	return version
}

// Stats returns what was counted of every tool since the host began.
func (a *App) Stats() []stats.Row { return a.way().stats.Rows() }

// Loads returns how busy the servers are that were called.
func (a *App) Loads() []limit.Load { return a.way().limiter.Loads() }

// Audit returns how many events could not be written to the audit log, and
// why not the last ones; nil: the last ones were, or there is no log.
func (a *App) Audit() (lost int, err error) {
	if a.way().audit == nil {
		return 0, nil
	}
	return a.way().audit.Lost()
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
	sayDeclared(cfg, timeouts)
	maps.Copy(limits, s.Limit.Servers)
	maps.Copy(timeouts, s.Timeout.Servers)
	s.Limit.Servers, s.Timeout.Servers = limits, timeouts
	return s
}

// spillDir returns a function that makes the directory for results that are too large:
// the one that the file tools of the same roots read.
func spillDir(cfg config.Config, offered func() []string) func() (string, error) {
	box := sandbox.New(sandbox.Config{Roots: cfg.Roots, AllowRootDir: true, ClientRoots: func(context.Context) ([]string, error) {
		if offered == nil {
			return nil, nil
		}
		return offered(), nil
	}})
	store := state.New(state.Config{Dir: cfg.State})
	return func() (string, error) {
		var roots []string // without any, no file tool works either
		if fs, err := box.FS(context.Background()); err == nil {
			roots = fs.Paths()
		}
		return store.MakeOutputDir(roots)
	}
}

// AuditDir is where the audit log of a state directory is.
func AuditDir(state string) string { return filepath.Join(state, "audit") }
