package core

import (
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

// present is what a configuration came to. A change replaces the whole of it;
// calls end in the one they began in.
type present struct {
	cfg     config.Config // in effect: of a server that could not be replaced, as it runs
	places  []*place      // in the configured order
	byName  map[string]*place
	views   map[string]*toolsearch.Offer // by profile; "": the whole
	way     way
	handler call.Handler

	declared   map[string]*declared.Tool // by served name
	registered map[string]bool           // those of them that are of the store
	tools      []*declared.Tool          // in their order
	models     *lookup.Registry
	reaches    sync.Map // by server's name; see behind

	calls sync.RWMutex // held for reading by calls, and for writing for ever after
}

// place is a server that is configured. It is immutable.
type place struct {
	server *upstream.Server
	entry  catalog.Entry
	cfg    config.Server
	off    bool
	calls  *sync.RWMutex // of the server's, likewise
}

// newPresent puts the parts together. fresh says of which server a new one is
// to be made though there is one of the name.
func (a *App) newPresent(cfg config.Config, before *present, fresh []string) (*present, error) {
	p := &present{cfg: cfg, byName: map[string]*place{}, views: map[string]*toolsearch.Offer{}}
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
	if p.way, err = nextWay(a.withRegistered(cfg), around{a.serverVersion, a.leads, a.newApproval, func(text string) { a.tell(text) }, a.apart, a.roots.offered}, before); err != nil {
		return nil, err
	}
	for _, sc := range slices.Concat(cfg.Servers, remotes(cfg, a.version), a.custom.config(a.version)) {
		if _, taken := p.byName[sc.Name]; taken { // the configuration's names differ
			return nil, fmt.Errorf("server %s: this name is reserved for registered tools; choose another", sc.Name)
		}
		one, err := a.newPlace(sc, p.way.cfg.Timeout, before, fresh)
		if err != nil {
			return nil, err
		}
		p.places = append(p.places, one)
		p.byName[sc.Name] = one
	}
	for _, off := range switchedOff(cfg) {
		s, err := upstream.New(off, a.spawner)
		if err != nil {
			return nil, err
		}
		p.places = append(p.places, &place{server: s, off: true, calls: new(sync.RWMutex)})
	}
	p.models = nextModels(p.cfg, before)
	if err := a.declare(p, before); err != nil {
		return nil, err
	}
	p.handler = call.Chain(sent(a.route), a.traced(p.way.stages())...)
	return p, nil
}

// newPlace makes a server, or takes the one that is there.
func (a *App) newPlace(sc config.Server, t timeout.Config, before *present, fresh []string) (*place, error) {
	var old *place
	if before != nil {
		old = before.byName[sc.Name]
	}
	if old != nil && !slices.Contains(fresh, sc.Name) {
		return &place{server: old.server, entry: a.entry(old.server, sc), cfg: sc, calls: old.calls}, nil
	}
	cfg := configured(sc, t)
	cfg.Roots, cfg.Host = a.roots.get, a.id
	if signIn, ok := sc.SignIn(a.Config.State, a.version); ok {
		cfg.Auth = oauth.NewSource(signIn)
	}
	s, err := upstream.New(cfg, a.spawner)
	if err != nil {
		return nil, err
	}
	if old != nil {
		s.Inherit(old.server)
	} else if level := a.level.Load(); level != nil {
		s.SetLogLevel(*level)
	}
	a.follow(s)
	return &place{server: s, entry: a.entry(s, sc), cfg: sc, calls: new(sync.RWMutex)}, nil
}

// entries are what the catalogue is made of.
func (p *present) entries() []catalog.Entry {
	var ours, theirs, own []catalog.Entry
	for _, one := range p.places {
		switch {
		case one.off:
		case one.entry.Plain:
			ours = append(ours, one.entry)
		default:
			theirs = append(theirs, one.entry)
		}
	}
	for _, t := range p.tools { // before servers, which may not take their names
		own = append(own, p.declaredEntry(t, 0))
	}
	return slices.Concat(ours, own, theirs)
}

// enter returns the server of that name and sees to it that it is not ended
// before leave is called.
func (a *App) enter(name string) (s *upstream.Server, leave func(), err error) {
	for {
		p, ok := a.present.Load().byName[name]
		if !ok {
			return nil, nil, toolerr.New(toolerr.ServerOffline, "server %s is no longer configured", name)
		}
		if p.calls.TryRLock() {
			return p.server, p.calls.RUnlock, nil
		}
		// Another has taken its place since.
	}
}

// handle is one call through all stages, as they are when it begins.
func (a *App) handle(ctx context.Context, req *call.Request) (*call.Result, error) {
	for {
		if p := a.present.Load(); p.calls.TryRLock() {
			defer p.calls.RUnlock()
			return p.handler(ctx, req)
		}
	}
}

// route hands a call to the server its tool belongs to.
func (a *App) route(ctx context.Context, req *call.Request) (*call.Result, error) {
	if t, ok := a.present.Load().declared[req.Tool.Server]; ok {
		if err := elsewhere(ctx, req); err != nil {
			return nil, err
		}
		return a.handleDeclared(ctx, t, req)
	}
	s, leave, err := a.enter(req.Tool.Server)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := elsewhere(ctx, req); err != nil {
		return nil, err
	}
	a.called(req.Tool.Server)
	req, done, err := a.join(ctx, req)
	if err != nil {
		return nil, err
	}
	if req, err = a.named(req); err != nil {
		done(nil)
		return nil, err
	}
	if req.Tool.Original == signInTool {
		res, err := a.callSignIn(ctx, req, s)
		done(res)
		return res, err
	}
	res, err := s.Handle(ctx, req)
	if err != nil && a.signIn(ctx, req, err) {
		res, err = s.Handle(ctx, req)
	}
	done(res)
	if err == nil && !a.Config.Joined { // what the other host says is for this one to heed
		res, err = unclaimed(res)
	}
	return res, err
}

// elsewhere returns why an approved call must not be carried out by what was
// found for it just now, of which nobody was asked.
func elsewhere(ctx context.Context, req *call.Request) error {
	err := approve.Elsewhere(ctx)
	if err == nil {
		return nil
	}
	return &call.ExecutionError{Tool: req.Tool.Name, Phase: call.PhaseConnect, Message: req.Tool.Name + " was not executed", Cause: err}
}

// sent notes that a call may have had an effect. Of one whose server did not
// come up nothing was sent; an error of a call within the call says nothing of
// this one.
func sent(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		if req.Sent == nil {
			return next(ctx, req)
		}
		res, err := next(ctx, req)
		failed, ok := err.(*call.ExecutionError) //nolint:errorlint // wrapped it may be that of another call
		if !ok || failed.Phase != call.PhaseConnect || failed.Tool != req.Tool.Name {
			req.Sent.Store(true)
		}
		return res, err
	}
}

// forward hands a message to its server, which has as long for it as for a call.
func (a *App) forward(ctx context.Context, m *call.Message) (json.RawMessage, error) {
	timed := timeout.New(a.way().cfg.Timeout)(func(ctx context.Context, req *call.Request) (*call.Result, error) {
		asking := *m
		asking.Ask = req.Ask
		raw, err := a.pass(ctx, &asking)
		return &call.Result{Raw: raw}, err
	})
	res, err := timed(ctx, &call.Request{Tool: &call.Tool{Name: m.Method, Server: m.Server}, Ask: m.Ask})
	if err != nil {
		return nil, err
	}
	return res.Raw, nil
}

func (a *App) pass(ctx context.Context, m *call.Message) (json.RawMessage, error) {
	s, leave, err := a.enter(m.Server)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.Forward(ctx, m)
}

// retireTime is how long the calls of a server that is not configured any more
// may take.
const retireTime = time.Minute

// retire ends a server once its calls are done.
func (a *App) retire(p *place) {
	done := make(chan struct{})
	a.work.Go(func() {
		defer close(done)
		p.calls.Lock() // for ever
	})
	a.work.Go(func() {
		late := time.NewTimer(retireTime)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
		case <-a.life.Done():
		}
		p.server.Close() // which ends its calls
	})
}

// retireWay closes what only calls of before still use.
func (a *App) retireWay(before, now *present) {
	log, approval := before.way.audit, before.way.approve
	if log == now.way.audit {
		log = nil
	}
	if approval == now.way.approve {
		approval = nil
	}
	if log == nil && approval == nil {
		return
	}
	a.work.Go(func() {
		before.calls.Lock() // for ever
		if log != nil {
			log.Close() //nolint:errcheck // Audit tells
		}
		if approval != nil {
			approval.Close()
		}
	})
}
