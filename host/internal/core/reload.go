package core

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// quiet is how long after its start a host looks first whether its files have
// changed, so that this is not in the way of the first answers.
const quiet = 300 * time.Millisecond

// Follow applies what changes in the files of the configuration, until ctx
// ends, and tells of it. load reads the configuration as it was read at first.
// A configuration that is wrong changes nothing.
func (a *App) Follow(ctx context.Context, load func() (config.Config, error), opt config.WatchOptions) error {
	select {
	case <-time.After(quiet):
	case <-ctx.Done():
		return nil
	}
	again := &retries{app: a}
	defer again.stop()
	return config.Watch(ctx, a.Config, load, opt, func(c config.Change) {
		again.stop()
		if c.Err == nil {
			a.unfinished.Store(nil)
			c.Err = a.apply(ctx, c.Config)
		}
		if c.Err != nil {
			a.stale.set(c.Err)
			a.tell("the previous configuration stays in force: " + strings.ReplaceAll(c.Err.Error(), "\n", "; "))
			return
		}
		again.begin(ctx)
	})
}

// Stale returns why the files of the configuration are not in effect as they
// are now; nil: they are.
func (a *App) Stale() error { return a.stale.get() }

// fault is an error that is there for some time.
type fault struct {
	mu  sync.Mutex
	err error
}

func (f *fault) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fault) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// apply puts a configuration in the place of the present one. Servers that it
// does not change run on; one that it does runs until the new one is ready,
// and stays if that does not become ready, which is left unfinished.
func (a *App) apply(ctx context.Context, cfg config.Config) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	before := a.present.Load()
	diff := config.Diff(before.cfg, cfg)
	if diff.Same() {
		a.left(unfinished{})
		return nil
	}
	a.spawner.SetMarks(cfg.Marks())
	now, err := a.newPresent(cfg, before, diff.Changed)
	if err != nil {
		return err
	}
	failed := a.warm(ctx, before, now, diff.Changed)
	if ctx.Err() != nil { // the host ends
		for _, name := range diff.Changed {
			now.byName[name].server.Close()
		}
		return nil
	}
	for name := range failed {
		now.keep(name, before)
		diff.Changed = slices.DeleteFunc(diff.Changed, func(n string) bool { return n == name })
	}
	a.left(unfinished{cfg, failed})
	if len(failed) > 0 && diff.Same() {
		return nil // nothing came of it
	}
	a.offer(now, before)
	a.present.Store(now)
	a.changedOffers(before, now)
	a.Catalog.Update(now.entries())
	if slices.Contains(diff.Settings, "tool_pins") {
		a.setPins(cfg)
	}
	for _, old := range before.places {
		if !slices.ContainsFunc(now.places, func(p *place) bool { return p.server == old.server }) {
			a.retire(old)
		}
	}
	a.modelsChanged(before, now)
	a.retireWay(before, now)
	a.begin(now, func(name string) bool { return slices.Contains(diff.Added, name) })
	if !diff.Same() {
		a.tell("configuration changed: " + diff.String())
	}
	if slices.Contains(diff.Settings, "store") {
		a.tell("store: the previous store is used until the host is restarted")
	}
	if slices.Contains(diff.Settings, "auth") {
		a.tell("auth: the previous settings are used until the host is restarted")
	}
	for _, notice := range cfg.Notices {
		if !slices.Contains(before.cfg.Notices, notice) {
			a.tell(notice)
		}
	}
	return nil
}

// warm starts the servers that are to replace running ones, and returns why
// some did not come up.
func (a *App) warm(ctx context.Context, before, now *present, names []string) map[string]error {
	failed := map[string]error{}
	var all sync.WaitGroup
	var mu sync.Mutex
	turns := make(chan struct{}, 4) // as many as the catalogue starts at a time
	for _, name := range names {
		old, next := before.byName[name].server, now.byName[name].server
		if state := old.Status().State; state != upstream.Ready && state != upstream.Unstable {
			continue
		}
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if _, err := next.Tools(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[name] = err
			}
		})
	}
	all.Wait()
	return failed
}

// keep leaves a server as it was before.
func (p *present) keep(name string, before *present) {
	old := before.byName[name]
	i := slices.Index(p.places, p.byName[name])
	p.places[i].server.Close()
	p.places[i], p.byName[name] = old, old
	for i := range p.cfg.Servers {
		if p.cfg.Servers[i].Name == name {
			p.cfg.Servers[i] = old.cfg
		}
	}
	for i := range p.cfg.Remote {
		if p.cfg.Remote[i].Name == name {
			p.cfg.Remote[i] = old.cfg.Spec
		}
	}
}
