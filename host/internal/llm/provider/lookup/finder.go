// Package lookup finds models by name: the configured models or, without a
// configuration, the models of the environment and of this machine.
//
// A model is requested as
//
//   - NAME,
//   - PROVIDER/NAME if several providers have the name,
//   - PROVIDER for the provider's first model,
//   - "" for the default: the configured default, or else the first configured
//     model, or else a model with a key in the environment, or else the
//     first model of a server on this machine, or else directcall, which is not
//     a model.
//
// A name in no list belongs to the named provider, or to the only provider whose
// vendor's model names have the same prefix.
//
// Nothing is opened or searched before a model is requested. A search on this
// machine is repeated after cacheLifetime.
package lookup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Backend holds functions that a Finder calls to reach providers.
type Backend struct {
	// Open returns a model. It sends no request.
	Open func(p Provider, m Model) (provider.Model, error)

	// List returns the models that a provider lists, or an error if it does not
	// answer. nil: lists are not requested.
	List func(ctx context.Context, p Provider) ([]Model, error)

	// FindLocal searches for a provider on this machine; nil: no search.
	FindLocal func(ctx context.Context) (Provider, bool)
}

// maxOpened bounds the open models, because clients choose the names.
const maxOpened = 1000

// cacheLifetime is the time for which lists of models and results of the search on this
// machine are reused, also errors.
const cacheLifetime = time.Minute

// A Finder finds models by name. It is safe for concurrent use.
type Finder struct {
	cfg     Config
	backend Backend

	mu         sync.Mutex
	opened     map[string]provider.Model
	listed     map[string]modelList // by provider
	local      *Provider            // nil: none was found
	searchedAt time.Time            // time of the last search for local; zero: never

	searchSlot chan struct{} // holds one item during a search or a request for a list
}

// modelList is the answer of a provider's list of models at a time.
type modelList struct {
	models []Model
	err    error
	at     time.Time
}

// New returns a Finder for a valid configuration.
func New(cfg Config, ways Backend) *Finder {
	return &Finder{cfg: cfg, backend: ways, opened: map[string]provider.Model{}, listed: map[string]modelList{}, searchSlot: make(chan struct{}, 1)}
}

// modelEntry is a model with its provider.
type modelEntry struct {
	provider Provider
	model    Model
	name     string // under which the model is requested
}

// configured returns the providers of the configuration, or without one those of the
// environment.
func (r *Finder) configured() []Provider {
	all := slices.Clone(r.cfg.Providers)
	for _, p := range r.cfg.Found {
		if !slices.ContainsFunc(all, func(have Provider) bool { return have.Name == p.Name }) {
			all = append(all, p)
		}
	}
	return all
}

// providers returns the configured providers and directcall. Without configured ones, it
// looks for a provider on this machine and returns that instead.
func (r *Finder) providers(ctx context.Context) []Provider {
	all := r.configured()
	if !slices.ContainsFunc(all, func(p Provider) bool { return p.Kind != Command }) {
		if p, ok := r.findLocal(ctx); ok {
			all = append(all, p)
		}
	}
	if !slices.ContainsFunc(all, func(p Provider) bool { return p.Kind == Command || p.Name == string(Command) }) {
		all = append(all, Provider{Name: string(Command), Kind: Command, Why: "always available"})
	}
	return all
}

// models returns the provider's models, from the configuration or else from the provider's
// list, which it requests at most once in cacheLifetime. It returns the error of that request.
func (r *Finder) models(ctx context.Context, p Provider) ([]Model, error) {
	switch {
	case len(p.Models) > 0:
		return p.Models, nil
	case p.Kind == Command || p.Kind == Scripted:
		return []Model{{Name: p.Name}}, nil
	case r.backend.List == nil:
		return nil, nil
	}
	leave, err := r.acquireSearch(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r.mu.Lock()
	have, ok := r.listed[p.Name]
	r.mu.Unlock()
	if ok && time.Since(have.at) < cacheLifetime {
		return have.models, have.err
	}
	models, err := r.backend.List(ctx, p)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed[p.Name] = modelList{models, err, time.Now()}
	return models, err
}

// acquireSearch waits until no other search or request for a list is running, so that
// concurrent callers share one request. The caller calls leave. It returns the error of ctx
// if that ends first.
func (r *Finder) acquireSearch(ctx context.Context) (leave func(), err error) {
	select {
	case r.searchSlot <- struct{}{}:
		return func() { <-r.searchSlot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// findLocal looks for a server of models on this machine. Concurrent callers share one
// search, kept for cacheLifetime. It returns false if no server answers or ctx ends.
func (r *Finder) findLocal(ctx context.Context) (Provider, bool) {
	if r.backend.FindLocal == nil {
		return Provider{}, false
	}
	leave, err := r.acquireSearch(ctx)
	if err != nil {
		return Provider{}, false
	}
	defer leave()
	r.mu.Lock()
	local, looked := r.local, r.searchedAt
	r.mu.Unlock()
	if looked.IsZero() || time.Since(looked) >= cacheLifetime {
		found, ok := r.backend.FindLocal(ctx)
		if ctx.Err() != nil {
			return found, ok
		}
		local = nil
		if ok {
			local = &found
		}
		r.mu.Lock()
		r.local, r.searchedAt = local, time.Now()
		r.mu.Unlock()
	}
	if local == nil {
		return Provider{}, false
	}
	return *local, true
}

// entries returns all listed models with the names under which they are requested. It can
// request lists from providers.
func (r *Finder) entries(ctx context.Context) []modelEntry {
	var all []modelEntry
	taken := map[string]bool{}
	for _, p := range r.providers(ctx) {
		models, _ := r.models(ctx, p) //nolint:errcheck // one that cannot be asked lists nothing
		for _, m := range models {
			name := m.Name
			if taken[name] {
				name = p.Name + "/" + m.Name
			}
			taken[name] = true
			all = append(all, modelEntry{p, m, name})
		}
	}
	return all
}

// List returns information about all models. A provider that does not answer adds none. It
// can request lists from providers.
func (r *Finder) List(ctx context.Context) []provider.Info {
	infos := []provider.Info{}
	for _, o := range r.entries(ctx) {
		if m, err := r.open(o); err == nil {
			infos = append(infos, m.Info())
		}
	}
	return infos
}

// Get returns the model with a name; the package comment has the rules. It returns
// NO_MODEL for an unknown name, and otherwise the error that prevented the search.
func (r *Finder) Get(ctx context.Context, name string) (provider.Model, error) {
	if name == "" || name == "default" || name == "auto" {
		return r.Default(ctx)
	}
	o, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.open(o)
}

// Default returns the default model, or NO_MODEL without one. It can request lists from
// providers; if that fails, it returns the reason.
func (r *Finder) Default(ctx context.Context) (provider.Model, error) {
	o, err := r.defaultEntry(ctx)
	if err != nil {
		return nil, err
	}
	return r.open(o)
}

// IsConfigured reports whether the configuration names a model or the environment has
// a key for one. It sends no request.
func (r *Finder) IsConfigured() bool {
	return r.cfg.Default != "" || slices.ContainsFunc(r.configured(), func(p Provider) bool {
		return p.Key != "" || p.BaseURL != "" || p.Project != "" || len(p.Headers) > 0 || p.Kind == Scripted || p.Kind == Command
	})
}

// HasLocal reports whether a model server answers on this machine; see Backend.FindLocal
// for how it looks and how long.
func (r *Finder) HasLocal(ctx context.Context) bool {
	_, ok := r.findLocal(ctx)
	return ok
}

// defaultEntry returns the default model; see Default.
func (r *Finder) defaultEntry(ctx context.Context) (modelEntry, error) {
	if r.cfg.Default != "" && r.cfg.Default != "auto" {
		return r.find(ctx, r.cfg.Default)
	}
	var failed error
	for _, p := range r.providers(ctx) {
		models, err := r.models(ctx, p)
		if len(models) > 0 {
			return r.newEntry(p, models[0]), nil
		}
		if err != nil && failed == nil {
			failed = unlistedError(p, err)
		}
		if p.Why == "" { // a configured provider is not replaced by another
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return modelEntry{}, err
	}
	if failed != nil {
		return modelEntry{}, failed
	}
	return modelEntry{}, toolerr.New(toolerr.NoModel, "no default model: set models.default in the configuration, or list models of its first provider")
}

// newEntry returns a provider's model with a name that finds it again.
func (r *Finder) newEntry(p Provider, m Model) modelEntry {
	for _, other := range r.configured() {
		if other.Name == p.Name {
			break
		}
		if other.Name != p.Name && slices.ContainsFunc(other.Models, func(o Model) bool { return o.Name == m.Name }) {
			return modelEntry{p, m, p.Name + "/" + m.Name}
		}
	}
	return modelEntry{p, m, m.Name}
}

// find returns the model NAME, PROVIDER/NAME or PROVIDER (its first one), or NO_MODEL. It
// asks providers for lists only if configured and known names do not settle it.
func (r *Finder) find(ctx context.Context, name string) (modelEntry, error) {
	known := r.configured()
	for _, p := range known { // without a request, if the configuration is enough
		for _, m := range p.Models {
			if m.Name == name {
				return modelEntry{p, m, name}, nil
			}
		}
	}
	if prefix, rest, ok := strings.Cut(name, "/"); ok && rest != "" {
		for _, p := range known {
			if p.Name == prefix {
				return entryFor(p, rest), nil
			}
		}
	}
	for _, p := range known {
		if p.Name != name {
			continue
		}
		models, err := r.models(ctx, p)
		if len(models) == 0 {
			return modelEntry{}, unlistedError(p, err)
		}
		return r.newEntry(p, models[0]), nil
	}
	if p, ok := findByVendor(known, name); ok {
		return modelEntry{p, Model{Name: name}, name}, nil
	}
	every := r.entries(ctx)
	if err := ctx.Err(); err != nil {
		return modelEntry{}, err
	}
	var names []string
	for _, o := range every {
		if o.name == name || o.provider.Name == name || o.provider.Name+"/"+o.model.Name == name {
			return o, nil
		}
		names = append(names, o.name)
	}
	for _, o := range every { // models found on this machine
		if rest, ok := strings.CutPrefix(name, o.provider.Name+"/"); ok && rest != "" {
			return entryFor(o.provider, rest), nil
		}
	}
	if len(known) > 0 || len(names) > 1 {
		return modelEntry{}, toolerr.New(toolerr.NoModel, "no model %q; available: %s", name, strings.Join(firstNames(names), ", "))
	}
	return modelEntry{}, toolerr.New(toolerr.NoModel, "no model %q: no provider is configured, no key is set in the environment, and no local model answers; only %s is available", name, Command)
}

// unlistedError returns the error for a provider whose list of models could not be
// read.
func unlistedError(p Provider, err error) error {
	if err != nil {
		return toolerr.New(toolerr.NoModel, "provider %s cannot list its models (%w): give one as %s/NAME", p.Name, err, p.Name)
	}
	return toolerr.New(toolerr.NoModel, "provider %s lists no models: give one as %s/NAME", p.Name, p.Name)
}

// firstNames returns at most 20 of the names. An additional entry says how many more
// there are.
func firstNames(names []string) []string {
	const most = 20
	if len(names) > most {
		return append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return names
}

// entryFor returns an entry for a name of the provider's models, which need not be
// listed.
func entryFor(p Provider, name string) modelEntry {
	m := Model{Name: name}
	for _, listed := range p.Models {
		if listed.Name == name {
			m = listed
		}
	}
	return modelEntry{p, m, p.Name + "/" + name}
}

// findByVendor returns the only provider whose vendor's model names have the same prefix as
// name. ok is false unless there is exactly one.
func findByVendor(known []Provider, name string) (found Provider, ok bool) {
	vendor := Kind("")
	for _, v := range []struct {
		kind     Kind
		prefixes []string
	}{
		{OpenAI, []string{"gpt-", "o1", "o3", "o4", "chatgpt-"}}, {Anthropic, []string{"claude-"}}, {Gemini, []string{"gemini-"}},
	} {
		if slices.ContainsFunc(v.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			vendor = v.kind
		}
	}
	for _, p := range known {
		if p.Kind == vendor && (p.BaseURL == "" || vendor != OpenAI) {
			if ok {
				return Provider{}, false
			}
			found, ok = p, true
		}
	}
	return found, ok
}

// open opens a model. The same entry always gets the same model. It returns the error of
// Backend.Open.
func (r *Finder) open(o modelEntry) (provider.Model, error) {
	key := o.provider.Name + "/" + o.model.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.opened[key]
	if !ok {
		var err error
		if m, err = r.backend.Open(o.provider, o.model); err != nil {
			return nil, err
		}
		if len(r.opened) < maxOpened {
			r.opened[key] = m
		}
	}
	return renamedModel{m, o.name}, nil
}

// renamedModel is a model whose Info has the name under which it is requested here.
type renamedModel struct {
	provider.Model
	name string
}

// Info returns the model's information with the name for Get.
func (n renamedModel) Info() provider.Info {
	info := n.Model.Info()
	info.Name = n.name
	return info
}
