// Package core assembles the parts of a configuration into a running host. It makes no
// decisions itself.
//
// Follow applies changes of the configuration. A change replaces the whole snapshot. A
// running call keeps its pipeline, but uses the new server if it has not reached the old
// one. A server or an audit log that is no longer configured
// ends after its last call.
//
// The audit log consists of files instead of a log of the store: people read it with
// tail and jq, it is written thousands of times a second, it must not wait for a
// database that other hosts write to, and it has its own limits. The store's logs and
// blobs are trimmed every hour.
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

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/confine"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/trace"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// instructions returns the instructions for a client's model. They name the first of the
// configured roots.
func instructions(roots []string) string {
	base := "the project's directory"
	if len(roots) > 0 && len(roots[0]) < 512 { // clients truncate long instructions
		base = "the first root directory (" + strings.TrimSuffix(roots[0], ":ro") + ")"
	}
	return "Tools for working in a source tree: find files, search contents, list directories, read and edit files, run commands. Paths are absolute, or relative to " + base +
		". A truncated result says how to continue. An error says what to do next. Tools named SERVER__TOOL come from the server SERVER, which the user added."
}

// App is a running host. It starts nothing before it is needed. It is safe for
// concurrent use.
type App struct {
	Config  config.Config // as given to Open; the files may have changed since
	Catalog *catalog.Catalog
	Gateway *gateway.Gateway
	Handler call.Handler // runs one call through all stages

	version       string
	startedAt     time.Time
	sessionKey    [32]byte // random; see sessionName
	controlSocket controlSocket
	tracer        *trace.Tracer // nil: calls are not traced

	spawner  *upstream.Spawner
	snapshot atomic.Pointer[snapshot]

	reloadMu sync.Mutex // held while the snapshot is replaced

	storedTools    storedTools // its tools are guarded by reloadMu
	goTools        goTools
	roots          rootSet
	signIns        signIns
	issuer         atomic.Pointer[accesstoken.Verifier] // of the users of serve; nil: users do not sign in
	links          signInLinks
	logLevel       atomic.Pointer[string] // of log messages; nil: not set
	url            atomic.Pointer[string] // of the HTTP server; nil: there is none
	reloadError    lastError
	partialReload  atomic.Pointer[partialReload] // nil: the last reload is complete
	retryRequested chan struct{}                 // capacity 1: a retry is requested
	backoff        backoff
	store          *store.Store        // nil: nothing is stored
	storeUsed      atomic.Bool         // the store was used
	memoryStore    func() *store.Store // used if store is nil
	notify         func(string)

	confiner        *confine.Confiner
	sentNotices     sync.Map // see notifyOnce
	gc              gcTuning
	recheckEvery    time.Duration
	reportsFailures bool // notify gets the failures of servers

	refreshes oauth.Refreshes // of sign-ins; Close waits for them
	onWait    func()          // see OnWait

	id string // random; identifies this host

	life   context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Open assembles a host from a checked configuration and opens its store. No server is
// started. It returns an error if the store cannot be opened or a part of the configuration
// is refused. The caller closes the host.
func Open(cfg config.Config) (*App, error) {
	version := cmp.Or(cfg.Version, "devel")
	a := &App{Config: cfg, version: version, id: rand.Text(), startedAt: time.Now(), spawner: upstream.NewSpawner(cfg.Guard), notify: func(string) {}, recheckEvery: pinRecheckInterval,
		memoryStore:    sync.OnceValue(func() *store.Store { return memory.New(memory.Config{}) }),
		retryRequested: make(chan struct{}, 1), backoff: backoff{first: time.Second, max: time.Minute, min: time.Second}}
	if _, err := rand.Read(a.sessionKey[:]); err != nil {
		return nil, err
	}
	a.confiner = confine.New(cfg.State)
	a.roots.configured = fileURIs(cfg.Roots)
	if cfg.Trace.IsOn() {
		a.tracer = trace.New(cfg.Trace, version)
	}
	a.spawner.SetMarks(cfg.Marks())
	a.life, a.cancel = context.WithCancel(context.Background())
	a.Handler = a.runCall
	if err := a.openStore(cfg); err != nil {
		return nil, err
	}
	first, err := a.newSnapshot(cfg, nil, nil)
	if err != nil {
		return nil, err
	}
	a.snapshot.Store(first)
	identity := append(jsonrpc.AppendString([]byte(`{"name":"toolroom","version":`), version), '}')
	a.Catalog = catalog.New(first.sourceConfigs(), identity, a.onCatalogChange)
	a.updateViews(first, nil)
	a.connectStore(cfg)
	a.Gateway, err = gateway.New(gateway.Config{
		Name: "toolroom", Title: "Toolroom", Version: version, Instructions: instructions(cfg.Roots),
		Extensions: a.extensionsOfServers, Forward: a.tracedForward(), OnRoots: a.setClientRoots, OnUser: a.listForUser, OnLogLevel: a.setLogLevel, Profile: a.profile, DelegatedCatalog: a.delegatedCatalog,
	}, currentCatalog{a}, a.Handler)
	return a, err
}

// OnNotice sets the function that gets messages for the user while the host runs. OnNotice
// must be called before the first use.
func (a *App) OnNotice(notify func(string)) { a.notify = notify }

// ReportFailures adds the failures of servers, and the faults of their definitions, to the
// notices. It is for hosts that serve clients: other commands write those that matter to
// them. It must be called before the first use.
func (a *App) ReportFailures() {
	a.reportsFailures = true
	a.Catalog.OnFault(func(fault error) { a.notify(fault.Error()) })
}

// ID returns the random id of this host, which no other running host has.
func (a *App) ID() string { return a.id }

// OnCall sets a function that is called after every call, in the goroutine of the
// call, with the result that the caller gets. It must be called before the first use.
func (a *App) OnCall(observe func(stats.Observation)) { a.currentPipeline().stats.Observe = observe }

// CallerName returns a name of a caller for logs: its entry point with the name of the
// signed-in user, or with a hash of the caller's id, which may be a session id.
func CallerName(c call.Caller) string {
	if c.User != "" {
		return c.EntryPoint + "/" + c.User
	}
	return audit.Caller(c.EntryPoint, c.ID)
}

// Servers returns the upstream servers of the current snapshot in the configured order,
// without declared tools.
func (a *App) Servers() []*upstream.Server {
	var all []*upstream.Server
	for _, p := range a.snapshot.Load().servers {
		all = append(all, p.server)
	}
	return all
}

// extensionsOfServers returns the extensions that the running servers declare. If two declare
// the same one, the settings of the first are used.
func (a *App) extensionsOfServers() map[string]any {
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

// Close stops all servers concurrently and waits for their processes.
func (a *App) Close() {
	a.controlSocket.close()
	a.cancel()
	var all sync.WaitGroup
	for _, s := range a.Servers() {
		all.Go(s.Close)
	}
	all.Wait()
	a.Gateway.Close()
	a.Catalog.Close()
	a.work.Wait()
	a.spawner.Close()
	a.snapshot.Load().pipeline.close()
	if a.tracer != nil {
		a.tracer.Close()
	}
	a.awaitRefreshes()
	if a.store != nil {
		a.store.Close() //nolint:errcheck // everything is written already
	}
}

// refreshNotice is the time that Close waits for refreshes before it calls the function of OnWait.
const refreshNotice = time.Second

// OnWait sets a function that Close calls if it has closed everything, and still waits until a
// provider has renewed the tokens of a sign-in. Call it before Close.
func (a *App) OnWait(f func()) { a.onWait = f }

// awaitRefreshes waits for the running refreshes of sign-ins, at most the time that they may take: the
// answer of a provider can contain the only valid refresh token.
func (a *App) awaitRefreshes() {
	if a.refreshes.Await(refreshNotice) {
		return
	}
	if a.onWait != nil {
		a.onWait()
	}
	a.refreshes.Await(oauth.RefreshTime)
}

// setClientRoots stores the client's roots. If the host has configured roots, servers get
// those; otherwise they get the client's.
func (a *App) setClientRoots(paths []string) {
	if len(a.roots.configured) == 0 && a.roots.set(paths) {
		for _, s := range a.Servers() {
			s.RootsChanged()
		}
	}
}

// rootSet holds the roots for servers that ask for them.
type rootSet struct {
	configured []string // configured; never changes

	mu     sync.Mutex
	client []string
	paths  []string // of the client, as paths
}

// clientPaths returns the paths of the client's roots.
func (r *rootSet) clientPaths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths
}

// get returns the configured roots and those of the client.
func (r *rootSet) get() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.configured, r.client)
}

// set stores the client's roots and returns true if they differ from the previous ones.
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

// fileURIs returns roots, without their :ro, as file: URIs.
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
