package core

import (
	"cmp"
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

// pipeline holds the stages of every call, with those that have state.
type pipeline struct {
	cfg         config.Stages // without functions
	stats       *stats.Recorder
	audit       *audit.Log // nil: there is no audit log
	spill       call.Stage
	validator   *validate.Validator
	approve     *approve.Stage
	policy      *policy.Policy
	cache       *cache.Cache
	limiter     *limit.Limiter
	breaker     *breaker.Breaker
	unchecked   *notices
	callsOthers func(server string) bool // of dependencies
	gc          *gcTuning
	unlisted    func(pipeline) call.Stage // of dependencies
}

// dependencies are the functions of the host that the stages need.
type dependencies struct {
	version     func(server string) string // distinguishes versions of a server
	callsOthers func(server string) bool   // whether the server is a tool that calls others
	approval    func(approve.Config) *approve.Stage
	notify      func(string)
	isPerCaller func(server string) bool // whether each caller has its own instance
	clientRoots func() []string          // roots of the client; nil: none
	gc          *gcTuning                // of the process; nil: not known

	// unlisted returns the stage for tools that are not listed; nil: all are.
	unlisted func(pipeline) call.Stage
}

// newPipeline builds the stages. before is the previous snapshot, or nil. A stage with
// state is reused unless its configuration has changed: counters, permits and cached
// results survive changes of other settings. The error names an invalid setting.
func newPipeline(cfg config.Config, of dependencies, before *snapshot) (pipeline, error) {
	s := stageConfigs(cfg)
	if s.Spill.Dir == nil && cfg.State != "" {
		s.Spill.Dir = spillDir(cfg, of.clientRoots)
	}
	if err := s.Validate(); err != nil {
		return pipeline{}, err
	}
	w := pipeline{cfg: s, stats: &stats.Recorder{}, unchecked: &notices{}, callsOthers: of.callsOthers, gc: cmp.Or(of.gc, &gcTuning{}), unlisted: of.unlisted}
	w.cfg.Spill.Dir = nil
	w.spill = spill.New(s.Spill)
	if before != nil {
		w = before.pipeline.reusedIn(w)
	}
	if w.validator == nil {
		s.Schemas.OnUnusable = func(t *call.Tool, err error) { w.unchecked.add(t.Name + ": " + err.Error()) }
		w.validator = validate.New(s.Schemas)
	}
	if w.policy == nil {
		w.approve = of.approval(s.Approval)
		w.policy = policy.New(s.Policy, w.approve)
	}
	if w.cache == nil {
		s.Cache.Version, s.Cache.MakesCalls, s.Cache.IsPerCaller = of.version, of.callsOthers, of.isPerCaller
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
			of.notify("the audit log cannot be written: " + err.Error() + "; see audit in toolroom.yaml, and --state")
		})
	}
	return w, nil
}

// reusedIn returns next with those stages of p whose configuration is the same, so that
// their state is kept.
func (p pipeline) reusedIn(next pipeline) pipeline {
	next.stats, next.unchecked = p.stats, p.unchecked
	same := func(a, b any) bool { return reflect.DeepEqual(a, b) }
	if same(p.cfg.Audit, next.cfg.Audit) {
		next.audit = p.audit
	}
	if same(p.cfg.Schemas, next.cfg.Schemas) {
		next.validator = p.validator
	}
	if same(p.cfg.Policy, next.cfg.Policy) && same(p.cfg.Approval, next.cfg.Approval) {
		next.policy, next.approve = p.policy, p.approve
	}
	if same(p.cfg.Cache, next.cfg.Cache) {
		next.cache = p.cache
	}
	if same(p.cfg.Limit, next.cfg.Limit) {
		next.limiter = p.limiter
	}
	if same(p.cfg.Breaker, next.cfg.Breaker) {
		next.breaker = p.breaker
	}
	return next
}

// currentPipeline returns the pipeline for calls that begin now.
func (a *App) currentPipeline() pipeline { return a.snapshot.Load().pipeline }

// stages returns the stages of every call, outermost first. The reasons for the order:
//
//   - gcTuning concerns the process instead of the call.
//   - stats sees what the caller sees: every call, its total time and its result.
//   - audit comes next, so that every call is logged, even if it is refused,
//     answered from the cache or cut.
//   - spill is outside cache: the cache holds whole results, so that a spill file's
//     name is never returned after the file was removed.
//   - the tool is listed before all stages that depend on its definition. Its call is
//     logged, even if the tool cannot be listed.
//   - arguments are validated before policy, whose rules then see arguments of the
//     expected types.
//   - policy is outside cache: a caller must not get from the cache what it may not
//     request. Approval is part of policy: all later stages run after the approval,
//     so no timeout runs while a person decides.
//   - cache is outside limit: a cached answer needs no permit.
//   - results are validated inside cache, so that only valid results are cached,
//     and outside limit, since the server has finished.
//   - limit is outside timeout, since the time in the queue is not the tool's. The
//     queue has its own limit, and the caller's deadline applies to it.
//   - timeout is outside retry: it limits the call with all its retries.
//   - retry is outside breaker, so that it stops when the circuit breaker opens.
func (p pipeline) stages() []call.Stage {
	timed := p.cfg.Timeout
	timed.MakesCalls = p.callsOthers
	stages := []call.Stage{p.gc.stage(), p.stats.Stage}
	if p.audit != nil {
		stages = append(stages, p.audit.Stage)
	}
	stages = append(stages, p.spill)
	if p.unlisted != nil {
		stages = append(stages, p.unlisted(p))
	}
	return append(stages,
		p.validator.Arguments,
		p.policy.Stage,
		p.cache.Stage,
		p.validator.Results,
		p.limiter.Stage,
		timeout.New(timed),
		retry.New(p.cfg.Retry),
		p.breaker.Stage,
	)
}

// close ends the callbacks of approvals and writes the rest of the audit log; it waits for
// that.
func (p pipeline) close() {
	p.approve.Close()
	if p.audit != nil {
		p.audit.Close() //nolint:errcheck // audit.Log.OnFault has told
	}
}

// notices holds the latest messages that a user may want to read.
type notices struct {
	mu    sync.Mutex
	lines []string
}

// add adds a notice; the oldest of more than 100 is dropped.
func (r *notices) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines = append(r.lines, line); len(r.lines) > 100 {
		r.lines = slices.Delete(r.lines, 0, 1)
	}
}

// UncheckedToolReasons describes the called tools whose schemas cannot be used to check
// calls, one line a tool with the reason; at most the latest 100.
func (a *App) UncheckedToolReasons() []string {
	r := a.currentPipeline().unchecked
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// serverVersion returns a value that changes when the answers of a server's tools can
// change: its configuration, the servers that it calls, and the version that it
// reports while it runs.
func (a *App) serverVersion(name string) string {
	now := a.snapshot.Load()
	version := hex.EncodeToString(now.reachableFrom(name).fingerprint)
	if p, ok := now.byName[name]; ok {
		version += " " + p.server.Status().Server + " " + strings.Join(a.roots.get(), " ")
	} else if t, ok := now.declared[name]; ok {
		version += " " + t.Version()
	}
	return version
}

// Stats returns the counters of every tool since the start of the host.
func (a *App) Stats() []stats.Row { return a.currentPipeline().stats.Rows() }

// Loads returns the running and waiting calls of each server that was called, and of each
// tool with its own permits.
func (a *App) Loads() []limit.Load { return a.currentPipeline().limiter.Loads() }

// AuditLosses returns the number of events that could not be written to the audit log, and
// the error of the latest attempt; nil: it succeeded, or there is no log.
func (a *App) AuditLosses() (lost int, err error) {
	if a.currentPipeline().audit == nil {
		return 0, nil
	}
	return a.currentPipeline().audit.Lost()
}

// stageConfigs returns cfg.Stages completed with values from other settings: the audit
// directory below the state directory, and the limits and timeouts of single servers and
// declared tools.
func stageConfigs(cfg config.Config) config.Stages {
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
	addDeclaredTimeouts(cfg, timeouts)
	maps.Copy(limits, s.Limit.Servers)
	maps.Copy(timeouts, s.Timeout.Servers)
	s.Limit.Servers, s.Timeout.Servers = limits, timeouts
	return s
}

// spillDir returns a function that creates the directory for the files of large results
// and returns its path. The file tools with the same roots may read it. clientRoots
// returns the client's roots; nil: it has none.
func spillDir(cfg config.Config, clientRoots func() []string) func() (string, error) {
	box := sandbox.New(sandbox.Config{Roots: cfg.Roots, AllowRootDir: true, ClientRoots: func(context.Context) ([]string, error) {
		if clientRoots == nil {
			return nil, nil
		}
		return clientRoots(), nil
	}})
	store := state.New(state.Config{Dir: cfg.State})
	return func() (string, error) {
		var roots []string // without roots, no file tool works
		if fs, err := box.FS(context.Background()); err == nil {
			roots = fs.Paths()
		}
		return store.MakeOutputDir(roots)
	}
}

// AuditDir returns the directory of the audit log in a state directory.
func AuditDir(state string) string { return filepath.Join(state, "audit") }
