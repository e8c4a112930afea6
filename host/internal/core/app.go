// Package core puts a configuration's parts together into a running host. It
// decides nothing: each part does.
//
// Follow applies a configuration that has changed. What it comes to replaces
// what there is as a whole: a call goes through the stages it began in, to the
// server that is there when it gets to it. A server or an audit log that is not
// wanted any more ends after its last call.
//
// The audit log is files, and not a log of the store: it is for people and
// their programs (tail, jq), is written thousands of times a second, must not
// wait for a database that other hosts write to, and has bounds of its own.
// What the store's logs and blobs come to hold is trimmed by the hour.
package core

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/trace"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// instructions are what a client's model is told of the whole.
const instructions = `Tools for working in a source tree: find files, search contents, list directories, read and edit files. Paths are absolute, or relative to the root (use ls with path "." to see it). A truncated result says how to continue. An error says what to do next. Tools named SERVER__TOOL belong to other servers.`

// App is a host. Nothing is started before it is needed.
type App struct {
	Config  config.Config // as it was opened with; files may have changed since
	Catalog *catalog.Catalog
	Gateway *gateway.Gateway
	Handler call.Handler // one call through all stages

	version string
	began   time.Time
	secret  [32]byte // random; see session
	private private
	tracer  *trace.Tracer // nil: calls are not traced

	spawner *upstream.Spawner
	present atomic.Pointer[present]

	changing sync.Mutex // held while present is being replaced

	repository repository // its tools: under changing
	custom     custom
	roots      rootSet
	signIns    signIns
	level      atomic.Pointer[string] // of log messages; nil: never set
	url        atomic.Pointer[string] // of the HTTP door; nil: there is none
	stale      fault
	unfinished atomic.Pointer[unfinished] // nil: nothing is
	wanted     chan struct{}              // holds one: what is unfinished was asked for
	patience   patience
	store      *store.Store        // nil: nothing is to be remembered
	used       atomic.Bool         // whether the store was
	forgetful  func() *store.Store // in its place where there is none
	tell       func(string)

	recheckEvery time.Duration

	id string // random; tells this host from others

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup
}

// Open puts a host together. Close it.
func Open(cfg config.Config) (*App, error) {
	version := cmp.Or(cfg.Version, "devel")
	a := &App{Config: cfg, version: version, id: rand.Text(), began: time.Now(), spawner: upstream.NewSpawner(cfg.Guard), tell: func(string) {}, recheckEvery: recheckPause,
		forgetful: sync.OnceValue(func() *store.Store { return memory.New(memory.Config{}) }),
		wanted:    make(chan struct{}, 1), patience: patience{first: time.Second, most: time.Minute, least: time.Second}}
	if _, err := rand.Read(a.secret[:]); err != nil {
		return nil, err
	}
	a.roots.own = fileURIs(cfg.Roots)
	if cfg.Trace.On() {
		a.tracer = trace.New(cfg.Trace, version)
	}
	a.spawner.SetMarks(cfg.Marks())
	a.life, a.end = context.WithCancel(context.Background())
	a.Handler = a.handle
	first, err := a.newPresent(cfg, nil, nil)
	if err != nil {
		return nil, err
	}
	a.present.Store(first)
	identity := append(jsonrpc.AppendString([]byte(`{"name":"toolroom","version":`), version), '}')
	a.Catalog = catalog.New(first.entries(), identity, a.changed)
	a.offer(first, nil)
	if err := a.openStore(cfg); err != nil {
		return nil, err
	}
	a.Gateway, err = gateway.New(gateway.Config{
		Name: "toolroom", Title: "Toolroom", Version: version, Instructions: instructions,
		Extensions: a.extensions, Forward: a.tracedForward(), OnRoots: a.clientRoots, OnLogLevel: a.setLogLevel, Profile: a.profile, DelegatedCatalog: a.joined,
	}, whole{a}, a.Handler)
	return a, err
}

// OnNotice sets what is told what a user should know of what happens while the
// host runs. Call it before first use.
func (a *App) OnNotice(tell func(string)) { a.tell = tell }

// ID tells this host from every other while it runs.
func (a *App) ID() string { return a.id }

// OnCall sets a function that is called after every call, by the goroutine of the
// call, with what its caller saw. Call it before first use.
func (a *App) OnCall(observe func(stats.Observation)) { a.way().stats.Observe = observe }

// CallerName names a caller in logs: its door, with the user who signed in, or
// with a hash of its id, which may be a session's.
func CallerName(c call.Caller) string {
	if c.User != "" {
		return c.Door + "/" + c.User
	}
	return audit.Caller(c.Door, c.ID)
}

// Servers returns all servers in the configured order.
func (a *App) Servers() []*upstream.Server {
	var all []*upstream.Server
	for _, p := range a.present.Load().places {
		all = append(all, p.server)
	}
	return all
}

// extensions are those that the running servers declared. Where two declare the
// same, the settings of the first count.
func (a *App) extensions() map[string]any {
	all := map[string]any{}
	for _, s := range a.Servers() {
		for name, settings := range s.Extensions() {
			if _, ok := all[name]; !ok {
				all[name] = settings
			}
		}
	}
	return all
}

// Close ends all servers, together, and waits until they are gone.
func (a *App) Close() {
	a.private.close()
	a.end()
	var all sync.WaitGroup
	for _, s := range a.Servers() {
		all.Go(s.Close)
	}
	all.Wait()
	a.Gateway.Close()
	a.Catalog.Close()
	a.work.Wait()
	a.spawner.Close()
	a.present.Load().way.close()
	if a.tracer != nil {
		a.tracer.Close()
	}
	if a.store != nil {
		a.store.Close() //nolint:errcheck // what was written is written
	}
}

// clientRoots is told what the client offers as roots. Roots of the host's
// own stand; without any, the client's are what the servers are told.
func (a *App) clientRoots(paths []string) {
	if len(a.roots.own) == 0 && a.roots.set(paths) {
		for _, s := range a.Servers() {
			s.RootsChanged()
		}
	}
}

// rootSet is what servers that ask for roots are told.
type rootSet struct {
	own []string // never changes

	mu     sync.Mutex
	client []string
	paths  []string // of client
}

// offered are the paths that the client named.
func (r *rootSet) offered() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths
}

func (r *rootSet) get() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.own, r.client)
}

// set reports whether anything changed.
func (r *rootSet) set(paths []string) bool {
	client := fileURIs(paths)
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(r.client, client) {
		return false
	}
	r.client, r.paths = client, paths
	return true
}

func fileURIs(paths []string) []string {
	var uris []string
	for _, p := range paths {
		p = filepath.ToSlash(strings.TrimSuffix(p, ":ro"))
		if !strings.HasPrefix(p, "/") {
			p = "/" + p // C:/…
		}
		uris = append(uris, (&url.URL{Scheme: "file", Path: p}).String())
	}
	return uris
}
