package core

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// GoToolServer is the server name of the tools that Register adds. Rules, limits and
// listings use it; the tools are served under their own names, without a prefix.
const GoToolServer = "custom"

// goTools are the tools that are functions of this program. They are served by
// a server like the others, in this process, so that every stage, progress,
// cancelling and questions to the client are the same for them.
type goTools struct {
	server *mcpkit.Server // nil: no tool was ever registered
}

// serverConfigs returns the configuration of the server of Go tools; none if no tool was
// ever registered.
func (c *goTools) serverConfigs(version string) []config.Server {
	if c.server == nil {
		return nil
	}
	serve := func(ctx context.Context, in io.Reader, out io.Writer) error {
		return c.server.Serve(ctx, in, out, wire.ServeOptions{})
	}
	return []config.Server{{Config: upstream.Config{Name: GoToolServer, Serve: serve, Era: upstream.Legacy, Version: version}}}
}

// goToolSource is the server's source for the catalog: its tools are known without
// asking it.
type goToolSource struct {
	*upstream.Server
	tools *mcpkit.Server
}

// List returns the definitions of the registered Go tools; other kinds are empty.
func (s goToolSource) List(_ context.Context, kind call.ListKind) (all []json.RawMessage, err error) {
	if kind == call.Tools {
		for _, t := range s.tools.Tools() {
			all = append(all, t.Definition())
		}
	}
	return all, nil
}

// goToolSourceConfig returns the catalog entry of the server of Go tools.
func (a *App) goToolSourceConfig(s *upstream.Server) catalog.SourceConfig {
	return catalog.SourceConfig{Source: goToolSource{s, a.goTools.server}, Plain: true}
}

// Register adds functions of this program as tools, all of them or none. They are
// served under their own names, and calls pass all stages as those of other servers
// do. A name that a bundled or another registered tool has, or that is known to be
// served, is an error. If another server later lists a tool with that name, that tool
// is left out and reported, as with every name clash.
func (a *App) Register(tools ...*mcpkit.Tool) error {
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	before := a.snapshot.Load()
	if p, ok := before.byName[GoToolServer]; ok && a.goTools.server == nil {
		return fmt.Errorf("server %s of the configuration has the name of the server of registered tools: rename it (%v)", GoToolServer, p.cfg.Command)
	}
	for _, t := range tools {
		if t != nil && slices.ContainsFunc(before.cfg.Servers, func(s config.Server) bool { return s.Bundled && s.Name == t.Name() }) {
			return fmt.Errorf("a bundled tool is named %q: choose another name", t.Name())
		}
		if t == nil {
			continue
		}
		if have, ok := a.Catalog.KnownSnapshot().ByName(t.Name()); ok && have.Server != GoToolServer {
			return fmt.Errorf("a tool of server %[2]s is named %[1]q: choose another name", t.Name(), have.Server)
		}
	}
	first := a.goTools.server == nil
	if first {
		a.goTools.server = mcpkit.NewServer(GoToolServer, "Tools of this program")
	}
	if err := a.goTools.server.Add(tools...); err != nil {
		if first {
			a.goTools.server = nil
		}
		return err
	}
	if first {
		now, err := a.newSnapshot(before.cfg, before, nil)
		if err != nil {
			a.goTools.server = nil
			return err
		}
		a.updateViews(now, before)
		a.snapshot.Store(now)
		a.Catalog.Update(now.sourceConfigs())
	}
	return a.Catalog.RefreshNow(a.life, GoToolServer)
}

// Unregister removes a registered tool and reports whether it existed. It waits until the
// catalog no longer has the tool.
func (a *App) Unregister(name string) bool {
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	if a.goTools.server == nil || !a.goTools.server.Remove(name) {
		return false
	}
	a.Catalog.RefreshNow(a.life, GoToolServer) //nolint:errcheck // it only fails when the host closes
	return true
}
