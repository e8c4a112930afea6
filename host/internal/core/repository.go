package core

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/sqlite"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// storeTime bounds how long the store is waited for, and lookTime how long to
// see whether something has changed in it; after a failure it is let alone for
// restTime.
const (
	storeTime = 10 * time.Second
	lookTime  = 2 * time.Second
	restTime  = 10 * time.Second
)

// repository is what this host knows of the declared tools in the store.
type repository struct {
	stored *declared.Stored // nil: nothing is kept
	tools  map[string]manifest.Tool

	state  atomic.Int64 // of the store when it was read; see neverRead
	rest   atomic.Int64 // until when it is let alone, in Unix milliseconds
	reload sync.Mutex   // held while it is read
}

// neverRead is no state of a store.
const neverRead = -1

// openRepository finds where declared tools are kept that were registered
// while a host ran. A name that nobody serves is looked up there, too.
func (a *App) openRepository(cfg config.Config) {
	if a.store == nil {
		return
	}
	vars := dialect.Variables{Env: os.LookupEnv}
	a.repository.state.Store(neverRead)
	a.repository.stored = &declared.Stored{
		Keys: noted{a.store.Keys, &a.used}, Options: manifest.Options{Expand: vars.Expand, Lookup: os.LookupEnv},
		There: func() bool {
			if cfg.Store.URL != "" {
				return true
			}
			_, err := os.Stat(filepath.Join(cfg.Store.Dir, sqlite.File))
			return err == nil
		},
	}
	a.Catalog.OnMissing(a.find)
	a.Catalog.OnUse(a.look)
}

// look sees to it that tools that other hosts have registered or forgotten are
// listed or not, and that one of the store is called as it is there now. It
// reports whether something has changed. A store that cannot be read leaves
// what there is.
func (a *App) look(ctx context.Context, t *call.Tool) bool {
	if t != nil && !a.present.Load().registered[t.Name] {
		return false
	}
	r := &a.repository
	if time.Now().UnixMilli() < r.rest.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	state, err := r.stored.State(ctx)
	if err == nil {
		if int64(state) == r.state.Load() {
			return false
		}
		r.reload.Lock()
		defer r.reload.Unlock()
		if int64(state) == r.state.Load() { // somebody else has
			return true
		}
		err = a.reread(ctx, state)
	}
	if err != nil && ctx.Err() != context.Canceled { //nolint:errorlint // it is that itself
		r.rest.Store(time.Now().Add(restTime).UnixMilli())
		a.tell("the last known registered tools stay served: " + err.Error())
	}
	return err == nil
}

// reread serves the tools that are in the store.
func (a *App) reread(ctx context.Context, state store.Version) error {
	tools, wrong, err := a.repository.stored.List(ctx)
	if err != nil {
		return err
	}
	for _, fault := range wrong {
		a.tell(fault.Error())
	}
	known := map[string]manifest.Tool{}
	for _, t := range tools {
		known[declared.Served(t)] = t
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	if len(known) > 0 || len(a.repository.tools) > 0 {
		if err := a.redeclare(known); err != nil {
			return err // and tried again
		}
	}
	a.repository.state.Store(int64(state))
	return nil
}

// withRegistered is a configuration with the tools of the store among those it
// declares, for the stages.
func (a *App) withRegistered(cfg config.Config) config.Config {
	taken := func(name string) bool {
		return slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Name == name }) ||
			slices.ContainsFunc(cfg.Remote, func(s dialect.Server) bool { return s.Name == name })
	}
	cfg.Declared = slices.Clone(cfg.Declared)
	for _, name := range slices.Sorted(maps.Keys(a.repository.tools)) {
		if !taken(name) {
			cfg.Declared = append(cfg.Declared, a.repository.tools[name])
		}
	}
	return cfg
}

// know serves tools of the store. Those of the configuration have their names
// first.
func (a *App) know(tools ...manifest.Tool) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	known := maps.Clone(a.repository.tools)
	if known == nil {
		known = map[string]manifest.Tool{}
	}
	for _, t := range tools {
		known[declared.Served(t)] = t
	}
	return a.redeclare(known)
}

// redeclare replaces the tools of the store that are served. a.changing is
// held.
func (a *App) redeclare(tools map[string]manifest.Tool) error {
	before, was := a.present.Load(), a.repository.tools
	a.repository.tools = tools
	now, err := a.newPresent(before.cfg, before, nil)
	if err != nil {
		a.repository.tools = was
		return err
	}
	a.offer(now, before)
	a.present.Store(now)
	a.Catalog.Update(now.entries())
	return nil
}

// registered are the tools of the store, in the order of their names, but
// those whose names are taken.
func (a *App) registered(p *present) (specs []manifest.Tool) {
	for _, name := range slices.Sorted(maps.Keys(a.repository.tools)) {
		if _, server := p.byName[name]; server || p.declared[name] != nil {
			continue
		}
		if server, _, ok := strings.Cut(name, "__"); ok && p.isServer(server) { // a server that came later
			continue
		}
		specs = append(specs, a.repository.tools[name])
	}
	return specs
}

// isServer reports whether a name is that of a configured server.
func (p *present) isServer(name string) bool {
	_, ok := p.byName[name]
	return ok || slices.ContainsFunc(p.cfg.Remote, func(s dialect.Server) bool { return s.Name == name }) ||
		slices.ContainsFunc(p.cfg.Off, func(s dialect.Server) bool { return s.Name == name })
}

// withThese are the tools that are declared, those of the store among them,
// with some more in the place of those of their names.
func (a *App) withThese(tools, more []manifest.Tool) []manifest.Tool {
	a.changing.Lock()
	defer a.changing.Unlock()
	known := maps.Clone(a.repository.tools)
	if known == nil {
		known = map[string]manifest.Tool{}
	}
	for _, t := range more {
		known[declared.Served(t)] = t
	}
	return append(slices.Clone(tools), slices.Collect(maps.Values(known))...)
}

// find looks for a tool in the store that nobody serves, and serves it from
// then on.
func (a *App) find(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	t, err := a.repository.stored.Get(ctx, name)
	if err != nil {
		if !toolerr.Is(err, toolerr.NotFound) && !toolerr.Is(err, toolerr.InvalidInput) && ctx.Err() == nil {
			a.tell("tool " + dialect.Show(name) + " is not served: " + err.Error())
		}
		return false
	}
	return a.know(t) == nil
}

// Declare keeps the tools of manifests in the store and serves them, and
// returns their served names. Other hosts with the same store find them by
// name at once, and list them when they are next asked.
func (a *App) Declare(ctx context.Context, file string, text []byte) (names []string, err error) {
	if a.repository.stored == nil {
		return nil, toolerr.New(toolerr.NotFound, "no state directory; give --state")
	}
	tools, _, err := manifest.Alone(file, text, a.repository.stored.Options)
	if err != nil {
		return nil, err
	}
	present := a.present.Load()
	for _, t := range tools {
		name := declared.Served(t)
		if _, server := present.byName[name]; server || slices.ContainsFunc(present.cfg.Declared, func(d manifest.Tool) bool { return declared.Served(d) == name }) {
			return nil, dialect.Problems{t.Problem("name", "its served name %s is used by the configuration; choose another name", name)}
		}
		if server, _, ok := strings.Cut(name, "__"); ok && present.isServer(server) {
			return nil, dialect.Problems{t.Problem("name", "its served name %s is also that of a tool of server %s; choose another name or namespace", name, server)}
		}
		names = append(names, name)
	}
	if err := config.Circles(a.withThese(present.cfg.Declared, tools)); err != nil {
		return nil, err
	}
	if tools, err = a.repository.stored.Put(ctx, file, text); err != nil {
		return nil, err
	}
	return names, a.know(tools...)
}

// Undeclare forgets a tool of the store by its served name. Other hosts that
// serve it see that when it is next called or listed.
func (a *App) Undeclare(ctx context.Context, name string) error {
	if a.repository.stored == nil {
		return toolerr.New(toolerr.NotFound, "no state directory; give --state")
	}
	if err := a.repository.stored.Delete(ctx, name); err != nil {
		return err
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	known := maps.Clone(a.repository.tools)
	delete(known, name)
	return a.redeclare(known)
}
