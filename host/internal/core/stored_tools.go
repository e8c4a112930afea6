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

// Limits of accesses to the store: storeReadTimeout for a read, storeCheckTimeout for a check for
// changes. After a failure the store is not used for storeRetryPause.
const (
	storeReadTimeout  = 10 * time.Second
	storeCheckTimeout = 2 * time.Second
	storeRetryPause   = 10 * time.Second
)

// storedTools caches the declared tools in the store.
type storedTools struct {
	stored *declared.Stored // nil: there is no store
	tools  map[string]manifest.Tool

	version     atomic.Int64 // version of the store that was read; see versionNeverRead
	pausedUntil atomic.Int64 // do not use the store before, in Unix milliseconds
	readMu      sync.Mutex   // held while the store is read
}

// versionNeverRead is different from all versions of a store.
const versionNeverRead = -1

// openStoredTools connects the host to the declared tools in the store. Unknown tool
// names are looked up there as well.
func (a *App) openStoredTools(cfg config.Config) {
	if a.store == nil {
		return
	}
	vars := dialect.Variables{Env: os.LookupEnv}
	a.storedTools.version.Store(versionNeverRead)
	a.storedTools.stored = &declared.Stored{
		Keys: useRecordingKeys{a.store.Keys, &a.storeUsed}, Options: manifest.Options{Expand: vars.Expand, Lookup: os.LookupEnv},
		Exists: func() bool {
			if cfg.Store.URL != "" {
				return true
			}
			_, err := os.Stat(filepath.Join(cfg.Store.Dir, sqlite.DatabaseName))
			return err == nil
		},
	}
	a.Catalog.OnMissing(a.findStored)
	a.Catalog.BeforeUse(a.refreshStored)
}

// refreshStored loads the store's declared tools again if other hosts have changed them,
// before a list (t is nil) or a call of t. It returns true if the served tools changed. If
// the store cannot be read, nothing changes.
func (a *App) refreshStored(ctx context.Context, t *call.Tool) bool {
	if t != nil && !a.snapshot.Load().stored[t.Name] {
		return false
	}
	r := &a.storedTools
	if time.Now().UnixMilli() < r.pausedUntil.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, storeCheckTimeout)
	defer cancel()
	state, err := r.stored.State(ctx)
	if err == nil {
		if int64(state) == r.version.Load() {
			return false
		}
		r.readMu.Lock()
		defer r.readMu.Unlock()
		if int64(state) == r.version.Load() { // another goroutine has read it
			return true
		}
		err = a.reloadStored(ctx, state)
	}
	if err != nil && ctx.Err() != context.Canceled { //nolint:errorlint // not a wrapped error
		r.pausedUntil.Store(time.Now().Add(storeRetryPause).UnixMilli())
		a.notify("the last known registered tools stay served: " + err.Error())
	}
	return err == nil
}

// reloadStored reads all declared tools of the store, at the version state, and serves
// them. Malformed ones are reported and left out. After an error the served tools stay, and
// the next call tries again.
func (a *App) reloadStored(ctx context.Context, state store.Version) error {
	tools, wrong, err := a.storedTools.stored.List(ctx)
	if err != nil {
		return err
	}
	for _, fault := range wrong {
		a.notify(fault.Error())
	}
	known := map[string]manifest.Tool{}
	for _, t := range tools {
		known[declared.ServedName(t)] = t
	}
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	if len(known) > 0 || len(a.storedTools.tools) > 0 {
		if err := a.replaceStored(known); err != nil {
			return err // retried later
		}
	}
	a.storedTools.version.Store(int64(state))
	return nil
}

// configWithStored returns the configuration for the stages, with the store's tools among
// the declared ones, except those with the name of a server.
func (a *App) configWithStored(cfg config.Config) config.Config {
	taken := func(name string) bool {
		return slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Name == name }) ||
			slices.ContainsFunc(cfg.Remote, func(s dialect.Server) bool { return s.Name == name })
	}
	cfg.Declared = slices.Clone(cfg.Declared)
	for _, name := range slices.Sorted(maps.Keys(a.storedTools.tools)) {
		if !taken(name) {
			cfg.Declared = append(cfg.Declared, a.storedTools.tools[name])
		}
	}
	return cfg
}

// addStored adds tools to the served tools of the store; a tool replaces one of the same
// name. After an error the served tools stay as they are.
func (a *App) addStored(tools ...manifest.Tool) error {
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	known := maps.Clone(a.storedTools.tools)
	if known == nil {
		known = map[string]manifest.Tool{}
	}
	for _, t := range tools {
		known[declared.ServedName(t)] = t
	}
	return a.replaceStored(known)
}

// replaceStored makes tools the served tools of the store, by a new snapshot. The caller
// holds a.reloadMu. After an error the served tools stay as they are.
func (a *App) replaceStored(tools map[string]manifest.Tool) error {
	before, was := a.snapshot.Load(), a.storedTools.tools
	a.storedTools.tools = tools
	now, err := a.newSnapshot(before.cfg, before, nil)
	if err != nil {
		a.storedTools.tools = was
		return err
	}
	a.updateViews(now, before)
	a.snapshot.Store(now)
	a.Catalog.Update(now.sourceConfigs())
	return nil
}

// storedSpecs returns the manifests of the store's tools, sorted by name, except those
// whose names are taken in s.
func (a *App) storedSpecs(s *snapshot) (specs []manifest.Tool) {
	for _, name := range slices.Sorted(maps.Keys(a.storedTools.tools)) {
		if _, server := s.byName[name]; server || s.declared[name] != nil {
			continue
		}
		if server, _, ok := strings.Cut(name, "__"); ok && s.isServer(server) { // a server that was added later
			continue
		}
		specs = append(specs, a.storedTools.tools[name])
	}
	return specs
}

// isServer reports whether a configured server has the name.
func (s *snapshot) isServer(name string) bool {
	_, ok := s.byName[name]
	return ok || slices.ContainsFunc(s.cfg.Remote, func(s dialect.Server) bool { return s.Name == name }) ||
		slices.ContainsFunc(s.cfg.Off, func(s dialect.Server) bool { return s.Name == name })
}

// withStored returns the configured tools together with those of the store. A tool in more
// replaces the stored tool with the same served name.
func (a *App) withStored(tools, more []manifest.Tool) []manifest.Tool {
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	known := maps.Clone(a.storedTools.tools)
	if known == nil {
		known = map[string]manifest.Tool{}
	}
	for _, t := range more {
		known[declared.ServedName(t)] = t
	}
	return append(slices.Clone(tools), slices.Collect(maps.Values(known))...)
}

// findStored looks for an unserved tool in the store, for at most storeReadTimeout, and serves
// it. It reports whether it found one that can be served.
func (a *App) findStored(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeReadTimeout)
	defer cancel()
	t, err := a.storedTools.stored.Get(ctx, name)
	if err != nil {
		if !toolerr.Is(err, toolerr.NotFound) && !toolerr.Is(err, toolerr.InvalidInput) && ctx.Err() == nil {
			a.notify("tool " + dialect.ShownName(name) + " is not served: " + err.Error())
		}
		return false
	}
	return a.addStored(t) == nil
}

// Declare stores the tools of manifests, serves them, and returns their served names. Other
// hosts with the same store find them by name at once, and list them at their next list
// request. It stores nothing if a manifest is wrong, a name is in use, or tools would call
// each other in a cycle; the error is then a dialect.Problems. It returns NOT_FOUND without
// a store.
func (a *App) Declare(ctx context.Context, file string, text []byte) (names []string, err error) {
	if a.storedTools.stored == nil {
		return nil, toolerr.New(toolerr.NotFound, "no state directory; give --state")
	}
	tools, _, err := manifest.ReadStored(file, text, a.storedTools.stored.Options)
	if err != nil {
		return nil, err
	}
	present := a.snapshot.Load()
	for _, t := range tools {
		name := declared.ServedName(t)
		if _, server := present.byName[name]; server || slices.ContainsFunc(present.cfg.Declared, func(d manifest.Tool) bool { return declared.ServedName(d) == name }) {
			return nil, dialect.Problems{t.Problem("name", "its served name %s is used by the configuration; choose another name", name)}
		}
		if server, _, ok := strings.Cut(name, "__"); ok && present.isServer(server) {
			return nil, dialect.Problems{t.Problem("name", "its served name %s is also that of a tool of server %s; choose another name or namespace", name, server)}
		}
		names = append(names, name)
	}
	if err := config.CheckCycles(a.withStored(present.cfg.Declared, tools)); err != nil {
		return nil, err
	}
	if tools, err = a.storedTools.stored.Put(ctx, file, text); err != nil {
		return nil, err
	}
	return names, a.addStored(tools...)
}

// Undeclare removes a tool from the store by its served name. Other hosts notice it at
// their next call or list request. It returns NOT_FOUND if the store does not have the
// tool.
func (a *App) Undeclare(ctx context.Context, name string) error {
	if a.storedTools.stored == nil {
		return toolerr.New(toolerr.NotFound, "no state directory; give --state")
	}
	if err := a.storedTools.stored.Delete(ctx, name); err != nil {
		return err
	}
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	known := maps.Clone(a.storedTools.tools)
	delete(known, name)
	return a.replaceStored(known)
}
