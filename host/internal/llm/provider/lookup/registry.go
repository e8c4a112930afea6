// Package lookup finds models by name: the configured models or, without a
// configuration, those of the environment and this machine.
//
// A model is requested as NAME, as PROVIDER/NAME if several providers have it, as
// PROVIDER for the provider's first model, or as "" for the default: the configured
// default, else the first configured model, else one for which the environment has a
// key, else the first of an endpoint on this machine, else directcall, which is not a
// model. A name in no list goes to the named provider, or to the only one whose
// vendor's names have this prefix.
//
// Nothing is opened or searched before a model is requested. The models of this
// machine are searched again after a while.
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

// Ways are how a registry gets at what it does not know.
type Ways struct {
	// Open makes a model. It asks nobody.
	Open func(p Provider, m Model) (provider.Model, error)

	// List returns the models that a provider lists, or an error if it does not
	// answer. nil: no provider is asked.
	List func(ctx context.Context, p Provider) ([]Model, error)

	// Local looks for a provider on this machine; nil: nobody looks.
	Local func(ctx context.Context) (Provider, bool)
}

// maxOpened bounds the open models, since clients choose the names.
const maxOpened = 1000

// keep is the time for which a search result, or a list, stays valid, also a negative
// one.
const keep = time.Minute

// A Registry is safe for concurrent use.
type Registry struct {
	cfg  Config
	ways Ways

	mu     sync.Mutex
	opened map[string]provider.Model
	listed map[string]listing // by provider
	local  *Provider          // nil: none was found
	looked time.Time          // when local was looked for; zero: never

	looking chan struct{} // holds one: who looks or lists
}

type listing struct {
	models []Model
	err    error
	at     time.Time
}

// New makes a registry of a valid configuration.
func New(cfg Config, ways Ways) *Registry {
	return &Registry{cfg: cfg, ways: ways, opened: map[string]provider.Model{}, listed: map[string]listing{}, looking: make(chan struct{}, 1)}
}

// one is a model with where it is.
type one struct {
	provider Provider
	model    Model
	name     string // as it is asked for
}

// known are the providers that need not be looked for.
func (r *Registry) known() []Provider {
	all := slices.Clone(r.cfg.Providers)
	for _, p := range r.cfg.Found {
		if !slices.ContainsFunc(all, func(have Provider) bool { return have.Name == p.Name }) {
			all = append(all, p)
		}
	}
	return all
}

// all are the known providers, the one on this machine if nothing else is known,
// and command.
func (r *Registry) all(ctx context.Context) []Provider {
	all := r.known()
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

// models are a provider's, as it is configured or says.
func (r *Registry) models(ctx context.Context, p Provider) ([]Model, error) {
	switch {
	case len(p.Models) > 0:
		return p.Models, nil
	case p.Kind == Command || p.Kind == Scripted:
		return []Model{{Name: p.Name}}, nil
	case r.ways.List == nil:
		return nil, nil
	}
	leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r.mu.Lock()
	have, ok := r.listed[p.Name]
	r.mu.Unlock()
	if ok && time.Since(have.at) < keep {
		return have.models, have.err
	}
	models, err := r.ways.List(ctx, p)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed[p.Name] = listing{models, err, time.Now()}
	return models, err
}

// enter lets one look or list at a time, so that many who ask at once make one
// request.
func (r *Registry) enter(ctx context.Context) (leave func(), err error) {
	select {
	case r.looking <- struct{}{}:
		return func() { <-r.looking }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *Registry) findLocal(ctx context.Context) (Provider, bool) {
	if r.ways.Local == nil {
		return Provider{}, false
	}
	leave, err := r.enter(ctx)
	if err != nil {
		return Provider{}, false
	}
	defer leave()
	r.mu.Lock()
	local, looked := r.local, r.looked
	r.mu.Unlock()
	if looked.IsZero() || time.Since(looked) >= keep {
		found, ok := r.ways.Local(ctx)
		if ctx.Err() != nil {
			return found, ok
		}
		local = nil
		if ok {
			local = &found
		}
		r.mu.Lock()
		r.local, r.looked = local, time.Now()
		r.mu.Unlock()
	}
	if local == nil {
		return Provider{}, false
	}
	return *local, true
}

// every is all models that are listed, under the names they are asked for.
func (r *Registry) every(ctx context.Context) []one {
	var all []one
	taken := map[string]bool{}
	for _, p := range r.all(ctx) {
		models, _ := r.models(ctx, p) //nolint:errcheck // one that cannot be asked lists nothing
		for _, m := range models {
			name := m.Name
			if taken[name] {
				name = p.Name + "/" + m.Name
			}
			taken[name] = true
			all = append(all, one{p, m, name})
		}
	}
	return all
}

// List returns information about all models. A provider that does not answer has none.
func (r *Registry) List(ctx context.Context) []provider.Info {
	infos := []provider.Info{}
	for _, o := range r.every(ctx) {
		if m, err := r.open(o); err == nil {
			infos = append(infos, m.Info())
		}
	}
	return infos
}

// Get returns the model of a name; see the package. Its error is NO_MODEL, or what
// kept it from being looked for.
func (r *Registry) Get(ctx context.Context, name string) (provider.Model, error) {
	if name == "" || name == "default" || name == "auto" {
		return r.Default(ctx)
	}
	o, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.open(o)
}

// Default returns the default model.
func (r *Registry) Default(ctx context.Context) (provider.Model, error) {
	o, err := r.first(ctx)
	if err != nil {
		return nil, err
	}
	return r.open(o)
}

// NoModel says that none was found where nobody chose one.
const NoModel = "no model is configured, no key is set in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY), and no local model answers"

// Configured reports whether somebody chose a model: the configuration names
// one, or a key for one is in the environment. Nobody is asked.
func (r *Registry) Configured() bool {
	return r.cfg.Default != "" || slices.ContainsFunc(r.known(), func(p Provider) bool {
		return p.Key != "" || p.BaseURL != "" || p.Project != "" || len(p.Headers) > 0 || p.Kind == Scripted || p.Kind == Command
	})
}

// Local reports whether a model answers on this machine; see Ways.Local.
func (r *Registry) Local(ctx context.Context) bool {
	_, ok := r.findLocal(ctx)
	return ok
}

// Notice says why the default is the one it is, where nobody chose it, and what
// could be done; "": somebody did.
func (r *Registry) Notice(ctx context.Context) string {
	o, err := r.first(ctx)
	switch {
	case err != nil || o.provider.Why == "":
		return ""
	case o.provider.Kind == Command:
		return NoModel + ": input lines are tool calls, like grep pattern=TODO path=src. See docs/models.md"
	}
	return fmt.Sprintf("the model is %s of %s: %s", o.model.Name, o.provider.Name, o.provider.Why)
}

// first is the default.
func (r *Registry) first(ctx context.Context) (one, error) {
	if r.cfg.Default != "" && r.cfg.Default != "auto" {
		return r.find(ctx, r.cfg.Default)
	}
	var failed error
	for _, p := range r.all(ctx) {
		models, err := r.models(ctx, p)
		if len(models) > 0 {
			return r.named(p, models[0]), nil
		}
		if err != nil && failed == nil {
			failed = unlisted(p, err)
		}
		if p.Why == "" { // who configured it wants it, and not another
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return one{}, err
	}
	if failed != nil {
		return one{}, failed
	}
	return one{}, toolerr.New(toolerr.NoModel, "no default model: set models.default in the configuration, or list models of its first provider")
}

// named is a model of a provider's, named so that it is found again.
func (r *Registry) named(p Provider, m Model) one {
	for _, other := range r.known() {
		if other.Name == p.Name {
			break
		}
		if other.Name != p.Name && slices.ContainsFunc(other.Models, func(o Model) bool { return o.Name == m.Name }) {
			return one{p, m, p.Name + "/" + m.Name}
		}
	}
	return one{p, m, m.Name}
}

func (r *Registry) find(ctx context.Context, name string) (one, error) {
	known := r.known()
	for _, p := range known { // without asking anybody, where that is enough
		for _, m := range p.Models {
			if m.Name == name {
				return one{p, m, name}, nil
			}
		}
	}
	if prefix, rest, ok := strings.Cut(name, "/"); ok && rest != "" {
		for _, p := range known {
			if p.Name == prefix {
				return of(p, rest), nil
			}
		}
	}
	for _, p := range known {
		if p.Name != name {
			continue
		}
		models, err := r.models(ctx, p)
		if len(models) == 0 {
			return one{}, unlisted(p, err)
		}
		return r.named(p, models[0]), nil
	}
	if p, ok := byVendor(known, name); ok {
		return one{p, Model{Name: name}, name}, nil
	}
	every := r.every(ctx)
	if err := ctx.Err(); err != nil {
		return one{}, err
	}
	var names []string
	for _, o := range every {
		if o.name == name || o.provider.Name == name || o.provider.Name+"/"+o.model.Name == name {
			return o, nil
		}
		names = append(names, o.name)
	}
	for _, o := range every { // found on this machine
		if rest, ok := strings.CutPrefix(name, o.provider.Name+"/"); ok && rest != "" {
			return of(o.provider, rest), nil
		}
	}
	if len(known) > 0 || len(names) > 1 {
		return one{}, toolerr.New(toolerr.NoModel, "no model %q; available: %s", name, strings.Join(some(names), ", "))
	}
	return one{}, toolerr.New(toolerr.NoModel, "no model %q: no provider is configured, no key is set in the environment, and no local model answers; only %s is available", name, Command)
}

// unlisted is the error of a provider whose models are not known.
func unlisted(p Provider, err error) error {
	if err != nil {
		return toolerr.New(toolerr.NoModel, "provider %s cannot list its models (%w): give one as %s/NAME", p.Name, err, p.Name)
	}
	return toolerr.New(toolerr.NoModel, "provider %s lists no models: give one as %s/NAME", p.Name, p.Name)
}

func some(names []string) []string {
	const most = 20
	if len(names) > most {
		return append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return names
}

// of is a provider's model of a name, listed or not.
func of(p Provider, name string) one {
	m := Model{Name: name}
	for _, listed := range p.Models {
		if listed.Name == name {
			m = listed
		}
	}
	return one{p, m, p.Name + "/" + name}
}

// byVendor finds the only provider whose vendor's names begin like the name.
func byVendor(known []Provider, name string) (found Provider, ok bool) {
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

// open returns the model, the same each time.
func (r *Registry) open(o one) (provider.Model, error) {
	key := o.provider.Name + "/" + o.model.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.opened[key]
	if !ok {
		var err error
		if m, err = r.ways.Open(o.provider, o.model); err != nil {
			return nil, err
		}
		if len(r.opened) < maxOpened {
			r.opened[key] = m
		}
	}
	return named{m, o.name}, nil
}

// named is a model under the name that it is asked for here.
type named struct {
	provider.Model
	name string
}

// Info says the name that Get takes.
func (n named) Info() provider.Info {
	info := n.Model.Info()
	info.Name = n.name
	return info
}
