// Package app puts a configuration's parts together into a running host. It
// decides nothing: each part does.
package app

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/catalog"
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/gateway"
	"github.com/toolroom-mcp/toolroom/host/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// instructions are what a client's model is told of the whole.
const instructions = `Tools for working in a source tree: files by pattern, by content, as a tree, as text, with edits where enabled. Paths are relative to the root (use ls with path "." to see it) or absolute below it. Results say how to go on when they were cut. An error names its code first and then what to do. Tools named SERVER__TOOL belong to other servers.`

// App is a host. Nothing is started before it is needed.
type App struct {
	Config  config.Config
	Catalog *catalog.Catalog
	Gateway *gateway.Gateway
	Handler call.Handler // one call through all stages

	spawner *upstream.Spawner
	servers []*upstream.Server
	byName  map[string]*upstream.Server
	roots   rootSet
	way     way
}

// Open puts a host together. Close it.
func Open(cfg config.Config, version string) (*App, error) {
	a := &App{Config: cfg, spawner: upstream.NewSpawner(cfg.Guard), byName: map[string]*upstream.Server{}}
	for _, p := range cfg.Profiles {
		if err := p.Validate(); err != nil {
			return nil, err
		}
	}
	a.roots.own = fileURIs(cfg.Roots)
	var entries []catalog.Entry
	for _, sc := range slices.Concat(cfg.Servers, remotes(cfg, version)) {
		sc.Config.Roots = a.roots.get
		s, err := upstream.New(configured(sc), a.spawner)
		if err != nil {
			return nil, err
		}
		a.follow(s)
		a.servers = append(a.servers, s)
		a.byName[s.Name()] = s
		entries = append(entries, entry(s, sc))
	}
	for _, off := range switchedOff(cfg) {
		s, err := upstream.New(off, a.spawner)
		if err != nil {
			return nil, err
		}
		a.servers = append(a.servers, s)
	}
	identity := append(jsonrpc.AppendString([]byte(`{"name":"toolroom","version":`), version), '}')
	a.Catalog = catalog.New(entries, identity, func(ch catalog.Change) { a.Gateway.Changed(ch.Kind) })

	var err error
	if a.way, err = newWay(cfg, a.serverVersion); err != nil {
		return nil, err
	}
	a.Handler = call.Chain(a.route, a.way.stages()...)
	a.Gateway, err = gateway.New(gateway.Config{
		Name: "toolroom", Title: "Toolroom", Version: version, Instructions: instructions,
		Forward: a.forward, OnRoots: a.clientRoots, OnLogLevel: a.setLogLevel, Profile: a.profiles(),
	}, a.Catalog.View(), a.Handler)
	return a, err
}

// route hands a call to the server its tool belongs to.
func (a *App) route(ctx context.Context, req *call.Request) (*call.Result, error) {
	s, ok := a.byName[req.Tool.Server]
	if !ok {
		return nil, toolerr.New(toolerr.ServerOffline, "server %s is not configured any more", req.Tool.Server)
	}
	return s.Handle(ctx, req)
}

// Servers returns all servers in the configured order.
func (a *App) Servers() []*upstream.Server { return a.servers }

// Close ends all servers, together, and waits until they are gone.
func (a *App) Close() {
	var all sync.WaitGroup
	for _, s := range a.servers {
		all.Go(s.Close)
	}
	all.Wait()
	a.Catalog.Close()
	a.spawner.Close()
	a.way.close()
}

// clientRoots is told what the client offers as roots. Roots of the host's
// own stand; without any, the client's are what the servers are told.
func (a *App) clientRoots(paths []string) {
	if len(a.roots.own) == 0 && a.roots.set(fileURIs(paths)) {
		for _, s := range a.servers {
			s.RootsChanged()
		}
	}
}

// rootSet is what servers that ask for roots are told.
type rootSet struct {
	own []string // never changes

	mu     sync.Mutex
	client []string
}

func (r *rootSet) get() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.own, r.client)
}

// set reports whether anything changed.
func (r *rootSet) set(client []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(r.client, client) {
		return false
	}
	r.client = client
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
