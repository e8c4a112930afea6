package core

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// snapshot is a configuration in force. A reload replaces the whole snapshot. A call uses
// the stages of one snapshot, even if a reload follows, but always the current server.
type snapshot struct {
	cfg      config.Config  // in force: for a server that could not be replaced, its running configuration
	servers  []*serverEntry // in the configured order
	byName   map[string]*serverEntry
	views    map[string]*toolsearch.List // by profile; "": all tools
	pipeline pipeline
	handler  call.Handler

	declared map[string]*declared.Tool // by served name
	stored   map[string]bool           // of declared, those of the store
	tools    []*declared.Tool          // in the configured order
	models   *lookup.Finder
	reaches  sync.Map // by server name; see reachableFrom

	calls sync.RWMutex // in-flight calls hold the read lock; retirePipeline takes the write lock and never releases it
}

// serverEntry is a configured server. It is immutable.
type serverEntry struct {
	server *upstream.Server
	entry  catalog.SourceConfig
	cfg    config.Server
	off    bool
	calls  *sync.RWMutex // of the calls to this server; used as snapshot.calls is
}

// newSnapshot creates a snapshot of cfg without starting a server. It reuses the servers of
// before by their names, except those named in changed, which get a replacement: changed
// must name each server whose configuration differs. It returns an error if a setting is
// invalid or a name is used twice.
func (a *App) newSnapshot(cfg config.Config, before *snapshot, changed []string) (*snapshot, error) {
	p := &snapshot{cfg: cfg, byName: map[string]*serverEntry{}, views: map[string]*toolsearch.List{}}
	for _, one := range cfg.Profiles {
		if err := one.Validate(); err != nil {
			return nil, err
		}
	}
	if err := cfg.Offer.Validate(); err != nil {
		return nil, err
	}
	p.cfg.Servers, p.cfg.Remote = slices.Clone(cfg.Servers), slices.Clone(cfg.Remote)
	var err error
	if p.pipeline, err = newPipeline(a.configWithStored(cfg), dependencies{a.serverVersion, a.callsOthers, a.newApproval, func(text string) { a.notify(text) }, a.isPerCaller, a.roots.clientPaths, &a.gc, a.unlistedTools}, before); err != nil {
		return nil, err
	}
	for _, sc := range slices.Concat(cfg.Servers, remoteServers(cfg, a.version), a.goTools.serverConfigs(a.version)) {
		if _, taken := p.byName[sc.Name]; taken { // names in a configuration are unique
			return nil, fmt.Errorf("server %s: this name is reserved for registered tools; choose another", sc.Name)
		}
		one, err := a.newServerEntry(sc, p, before, changed)
		if err != nil {
			return nil, err
		}
		p.servers = append(p.servers, one)
		p.byName[sc.Name] = one
	}
	for _, off := range disabledServers(cfg) {
		s, err := upstream.New(off, a.spawner)
		if err != nil {
			return nil, err
		}
		p.servers = append(p.servers, &serverEntry{server: s, off: true, calls: new(sync.RWMutex)})
	}
	p.models = newModels(p.cfg, before)
	if err := a.buildDeclared(p, before); err != nil {
		return nil, err
	}
	p.handler = call.Chain(markDispatched(a.route), a.withTracing(p.pipeline.stages())...)
	return p, nil
}

// newServerEntry returns the entry of a server for the snapshot next: with the server of
// before if there is one of this name and changed does not name it, else with a new one,
// which is not started. The error names an invalid setting of the server.
func (a *App) newServerEntry(sc config.Server, next, before *snapshot, changed []string) (*serverEntry, error) {
	var old *serverEntry
	if before != nil {
		old = before.byName[sc.Name]
	}
	if old != nil && !slices.Contains(changed, sc.Name) {
		entry := a.sourceConfigOf(old.server, sc)
		if kept, ok := old.entry.Source.(*signInSource); ok && kept.isSameAs(entry.Source) {
			entry.Source = kept // its lists and attempts stay
		}
		return &serverEntry{server: old.server, entry: entry, cfg: sc, calls: old.calls}, nil
	}
	if err := a.checkCallerCredentials(sc); err != nil {
		return nil, err
	}
	cfg := upstreamConfig(sc, next.pipeline.cfg.Timeout)
	a.setSandbox(&cfg, sc)
	a.setSharing(&cfg, sc, next.cfg)
	cfg.Roots, cfg.Host = a.roots.get, a.id
	if signIn, ok := sc.SignIn(a.tokenStorage(), a.version); ok {
		cfg.Auth = oauth.NewSource(signIn)
	}
	cfg.AuthFor = a.authFor(sc)
	s, err := upstream.New(cfg, a.spawner)
	if err != nil {
		return nil, err
	}
	if old != nil {
		s.Inherit(old.server)
	} else if level := a.logLevel.Load(); level != nil {
		s.SetLogLevel(*level)
	}
	a.handleNotifications(s, a.usesCallerCredentials(sc))
	return &serverEntry{server: s, entry: a.sourceConfigOf(s, sc), cfg: sc, calls: new(sync.RWMutex)}, nil
}

// sourceConfigs returns the entries for the catalog.
func (s *snapshot) sourceConfigs() []catalog.SourceConfig {
	var ours, theirs, own []catalog.SourceConfig
	for _, one := range s.servers {
		switch {
		case one.off:
		case one.entry.Plain:
			ours = append(ours, one.entry)
		default:
			theirs = append(theirs, one.entry)
		}
	}
	for _, t := range s.tools { // before the servers, which may not take their names
		own = append(own, s.declaredSourceConfig(t, 0))
	}
	return slices.Concat(ours, own, theirs)
}

// acquireServer returns the current server with a name, or SERVER_OFFLINE if it is no
// longer configured. The server is not stopped before leave is called.
func (a *App) acquireServer(name string) (s *upstream.Server, leave func(), err error) {
	for {
		p, ok := a.snapshot.Load().byName[name]
		if !ok {
			return nil, nil, toolerr.New(toolerr.ServerOffline, "server %s is no longer configured", name)
		}
		if p.calls.TryRLock() {
			return p.server, p.calls.RUnlock, nil
		}
		// A reload has replaced the server meanwhile: try again.
	}
}

// runCall makes one call through the pipeline of the current snapshot. A retired
// snapshot's pipeline stays open until the call ends.
func (a *App) runCall(ctx context.Context, req *call.Request) (*call.Result, error) {
	for {
		if p := a.snapshot.Load(); p.calls.TryRLock() {
			defer p.calls.RUnlock()
			return p.handler(ctx, req)
		}
	}
}

// route makes a call at its target, inside all stages: with the executor of a declared
// tool, or at the tool's server. If the server refuses because nobody is signed in, it
// signs in and repeats the call once. The call of an unlisted tool fails with its Err.
func (a *App) route(ctx context.Context, req *call.Request) (*call.Result, error) {
	if unlisted := req.Tool.Unlisted; unlisted != nil {
		return nil, cmp.Or(unlisted.Err, error(errNotListed))
	}
	if t, ok := a.snapshot.Load().declared[req.Tool.Server]; ok {
		if err := checkApprovedTarget(ctx, req); err != nil {
			return nil, err
		}
		return a.callDeclared(ctx, t, req)
	}
	s, leave, err := a.acquireServer(req.Tool.Server)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := checkApprovedTarget(ctx, req); err != nil {
		return nil, err
	}
	a.requestReplacement(req.Tool.Server)
	req, done, err := a.withCallback(ctx, req)
	if err != nil {
		return nil, err
	}
	if req, err = a.withSession(req); err != nil {
		done(nil)
		return nil, err
	}
	if req.Tool.Original == signInTool {
		res, err := a.callSignInTool(ctx, req, s)
		done(res)
		return res, err
	}
	before := a.signIns.count.Load()
	res, err := s.Call(ctx, req)
	if err != nil {
		var again bool
		if again, err = a.signInThroughClient(ctx, req, before, err); again {
			res, err = s.Call(ctx, req)
		}
	}
	done(res)
	if err == nil && !a.Config.Joined { // a joined host reads the other host's members itself
		res, err = withoutHostMeta(res)
	}
	return res, err
}

// checkApprovedTarget returns an error if a reload has changed the target of an approved
// call since the approver saw it.
func checkApprovedTarget(ctx context.Context, req *call.Request) error {
	err := approve.CheckScope(ctx)
	if err == nil {
		return nil
	}
	return &call.ExecutionError{Tool: req.Tool.Name, Phase: call.PhaseConnect, Message: req.Tool.Name + " was not executed", Cause: err}
}

// markDispatched returns a handler that records that a call may have had an effect. A call
// whose server did not start had none; the error of a nested call does not tell.
func markDispatched(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		if req.Dispatched == nil {
			return next(ctx, req)
		}
		res, err := next(ctx, req)
		failed, ok := err.(*call.ExecutionError) //nolint:errorlint // a wrapped one may belong to another call
		if !ok || failed.Phase != call.PhaseConnect || failed.Tool != req.Tool.Name {
			req.Dispatched.Store(true)
		}
		return res, err
	}
}

// forwardRequest implements call.Forwarder within the timeout of a call. It returns
// SERVER_OFFLINE if a reload has removed the server.
func (a *App) forwardRequest(ctx context.Context, m *call.UpstreamRequest) (json.RawMessage, error) {
	timed := timeout.New(a.currentPipeline().cfg.Timeout)(func(ctx context.Context, req *call.Request) (*call.Result, error) {
		asking := *m
		asking.Ask = req.Ask
		raw, err := a.forwardToServer(ctx, &asking)
		return &call.Result{Raw: raw}, err
	})
	res, err := timed(ctx, &call.Request{Tool: &call.Tool{Name: m.Method, Server: m.Server}, Ask: m.Ask})
	if err != nil {
		return nil, err
	}
	return res.Raw, nil
}

// forwardToServer does the same as forwardRequest without a timeout. Requests for a resource
// or a prompt sign in as calls do; see route.
func (a *App) forwardToServer(ctx context.Context, m *call.UpstreamRequest) (json.RawMessage, error) {
	s, leave, err := a.acquireServer(m.Server)
	if err != nil {
		return nil, err
	}
	defer leave()
	before := a.signIns.count.Load()
	raw, err := s.Forward(ctx, m)
	if err == nil || m.Method != "resources/read" && m.Method != "prompts/get" {
		return raw, err
	}
	req := &call.Request{Tool: &call.Tool{Name: m.Method, Server: m.Server}, Params: m.Params, Caller: m.Caller, OnNotify: m.OnNotify, Ask: m.Ask}
	again, err := a.signInThroughClient(ctx, req, before, err)
	if !again {
		return nil, err
	}
	return s.Forward(ctx, m)
}

// retireTimeout is the time that the calls of a removed server may still take.
const retireTimeout = time.Minute

// retireServer stops a removed server when its calls have ended, or after retireTimeout. It
// does not wait.
func (a *App) retireServer(entry *serverEntry) {
	done := make(chan struct{})
	a.work.Go(func() {
		defer close(done)
		entry.calls.Lock() // never released
	})
	a.work.Go(func() {
		late := time.NewTimer(retireTimeout)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
		case <-a.life.Done():
		}
		entry.server.Close() // which ends its calls
	})
}

// retirePipeline closes the stages of before that now does not reuse, when the calls of
// before have ended. It does not wait.
func (a *App) retirePipeline(before, now *snapshot) {
	log, approval := before.pipeline.audit, before.pipeline.approve
	if log == now.pipeline.audit {
		log = nil
	}
	if approval == now.pipeline.approve {
		approval = nil
	}
	if log == nil && approval == nil {
		return
	}
	a.work.Go(func() {
		before.calls.Lock() // never released
		if log != nil {
			log.Close() //nolint:errcheck // audit.Log.OnFault has told
		}
		if approval != nil {
			approval.Close()
		}
	})
}
