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

// firstCheckDelay is the delay of the first check for changed files after the start, so
// that it does not slow down the first answers.
const firstCheckDelay = 300 * time.Millisecond

// Follow reloads the configuration whenever one of its files changes, until ctx ends. It
// calls load to read it and opt.OnChange to report. A wrong configuration changes nothing;
// see WhyStale. It returns the error of config.Watch if files cannot be watched.
func (a *App) Follow(ctx context.Context, load func() (config.Config, error), opt config.WatchOptions) error {
	select {
	case <-time.After(firstCheckDelay):
	case <-ctx.Done():
		return nil
	}
	again := &reloadRetry{app: a}
	defer again.stop()
	return config.Watch(ctx, a.Config, load, opt, func(c config.Change) {
		again.stop()
		if c.Err == nil {
			a.partialReload.Store(nil)
			c.Err = a.apply(ctx, c.Config)
		}
		if c.Err != nil {
			a.reloadError.set(c.Err)
			a.notify("the previous configuration stays in force: " + strings.ReplaceAll(c.Err.Error(), "\n", "; "))
			return
		}
		again.begin(ctx)
	})
}

// WhyStale returns why the configuration files as they are now are not in force: the last
// reload failed or is only partly applied. nil: they are in force.
func (a *App) WhyStale() error { return a.reloadError.get() }

// lastError holds an error until it is replaced.
type lastError struct {
	mu  sync.Mutex
	err error
}

// get returns the error; nil: none.
func (f *lastError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// set replaces the error; nil: none.
func (f *lastError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// apply makes cfg the configuration in force: it replaces the snapshot. Unchanged servers
// keep running. A changed server runs until its replacement is ready; if the replacement
// does not start, the old server stays and a partialReload is recorded. It returns an
// error, and changes nothing, if cfg is refused as a whole.
func (a *App) apply(ctx context.Context, cfg config.Config) error {
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	before := a.snapshot.Load()
	diff := config.Diff(before.cfg, cfg)
	if diff.IsEmpty() {
		a.recordPartialReload(partialReload{})
		return nil
	}
	now, err := a.newSnapshot(cfg, before, diff.Changed)
	if err != nil {
		return err
	}
	a.spawner.SetMarks(cfg.Marks())
	failed := a.startReplacements(ctx, before, now, diff.Changed)
	if ctx.Err() != nil { // the host closes
		for _, name := range diff.Changed {
			now.byName[name].server.Close()
		}
		return nil
	}
	for name := range failed {
		now.keepServer(name, before)
		diff.Changed = slices.DeleteFunc(diff.Changed, func(n string) bool { return n == name })
	}
	a.recordPartialReload(partialReload{cfg, failed})
	if len(failed) > 0 && diff.IsEmpty() {
		return nil // nothing was changed
	}
	a.updateViews(now, before)
	a.snapshot.Store(now)
	a.notifyChangedViews(before, now)
	a.Catalog.Update(now.sourceConfigs())
	if slices.Contains(diff.Settings, "tool_pins") {
		a.configurePins(cfg)
	}
	for _, old := range before.servers {
		if !slices.ContainsFunc(now.servers, func(p *serverEntry) bool { return p.server == old.server }) {
			a.retireServer(old)
		}
	}
	a.relistModelServers(before, now)
	a.retirePipeline(before, now)
	a.startEarly(now, func(name string) bool { return slices.Contains(diff.Added, name) })
	if !diff.IsEmpty() {
		a.notify("configuration changed: " + diff.String())
	}
	if slices.Contains(diff.Settings, "store") {
		a.notify("store: the previous store is used until the host is restarted")
	}
	if slices.Contains(diff.Settings, "token_store") {
		a.notify("token_store: the previous setting is used until the host is restarted")
	}
	if slices.Contains(diff.Settings, "auth") {
		a.notify("auth: the previous settings are used until the host is restarted")
	}
	if slices.Contains(diff.Settings, "share_servers") {
		a.notify("share_servers: servers that run stay as they are until the host is restarted")
	}
	for _, notice := range cfg.Notices {
		if !slices.Contains(before.cfg.Notices, notice) {
			a.notify(notice)
		}
	}
	return nil
}

// startReplacements starts the replacements of the named servers whose previous process is
// running, and waits until they are ready. It returns the error of each server that did
// not start.
func (a *App) startReplacements(ctx context.Context, before, now *snapshot, names []string) map[string]error {
	failed := map[string]error{}
	var all sync.WaitGroup
	var mu sync.Mutex
	turns := make(chan struct{}, 4) // as many as the catalog starts concurrently
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

// keepServer puts the running server of before, with its configuration, back into s, and
// closes the replacement that did not start.
func (s *snapshot) keepServer(name string, before *snapshot) {
	old := before.byName[name]
	i := slices.Index(s.servers, s.byName[name])
	s.servers[i].server.Close()
	s.servers[i], s.byName[name] = old, old
	for i := range s.cfg.Servers {
		if s.cfg.Servers[i].Name == name {
			s.cfg.Servers[i] = old.cfg
		}
	}
	for i := range s.cfg.Remote {
		if s.cfg.Remote[i].Name == name {
			s.cfg.Remote[i] = old.cfg.Spec
		}
	}
}
