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

// Custom is the name of the server that tools registered with Register belong
// to. Rules, limits and listings know them by it; they are served under their
// own names.
const Custom = "custom"

// custom are the tools that are functions of this program. They are served by
// a server like the others, in this process, so that every stage, progress,
// cancelling and questions to the client are the same for them.
type custom struct {
	server *mcpkit.Server // nil: nothing was ever registered
}

// config is the server's entry, if there is one.
func (c *custom) config(version string) []config.Server {
	if c.server == nil {
		return nil
	}
	serve := func(ctx context.Context, in io.Reader, out io.Writer) error {
		return c.server.Serve(ctx, in, out, wire.ServeOptions{})
	}
	return []config.Server{{Config: upstream.Config{Name: Custom, Serve: serve, Era: upstream.Legacy, Version: version}}}
}

// customSource is the server as the catalogue sees it: its tools are known
// without asking it.
type customSource struct {
	*upstream.Server
	tools *mcpkit.Server
}

func (s customSource) List(_ context.Context, kind call.Kind) (all []json.RawMessage, err error) {
	if kind == call.Tools {
		for _, t := range s.tools.Tools() {
			all = append(all, t.Definition())
		}
	}
	return all, nil
}

// customEntry is the catalogue's entry.
func (a *App) customEntry(s *upstream.Server) catalog.Entry {
	return catalog.Entry{Source: customSource{s, a.custom.server}, Plain: true}
}

// Register adds tools that are functions of this program, all or none: from
// then on they are served under their own names at every door, and every call
// of them goes through all stages, as those of any server's do. A name that is
// taken by a bundled or another registered tool, or one that is known to be
// served, is an error; a tool of that name that another server shows later is
// left out, and told of as any clash of names is.
func (a *App) Register(tools ...*mcpkit.Tool) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	before := a.present.Load()
	if p, ok := before.byName[Custom]; ok && a.custom.server == nil {
		return fmt.Errorf("server %s of the configuration has the name of the server of registered tools: rename it (%v)", Custom, p.cfg.Command)
	}
	for _, t := range tools {
		if t != nil && slices.ContainsFunc(before.cfg.Servers, func(s config.Server) bool { return s.Bundled && s.Name == t.Name() }) {
			return fmt.Errorf("a bundled tool is named %q: choose another name", t.Name())
		}
		if t == nil {
			continue
		}
		if have, ok := a.Catalog.Known().ByName(t.Name()); ok && have.Server != Custom {
			return fmt.Errorf("a tool of server %[2]s is named %[1]q: choose another name", t.Name(), have.Server)
		}
	}
	first := a.custom.server == nil
	if first {
		a.custom.server = mcpkit.NewServer(Custom, "Tools of this program")
	}
	if err := a.custom.server.Add(tools...); err != nil {
		if first {
			a.custom.server = nil
		}
		return err
	}
	if first {
		now, err := a.newPresent(before.cfg, before, nil)
		if err != nil {
			a.custom.server = nil
			return err
		}
		a.offer(now, before)
		a.present.Store(now)
		a.Catalog.Update(now.entries())
	}
	return a.Catalog.Now(a.life, Custom)
}

// Unregister takes a registered tool away and reports whether there was one.
func (a *App) Unregister(name string) bool {
	a.changing.Lock()
	defer a.changing.Unlock()
	if a.custom.server == nil || !a.custom.server.Remove(name) {
		return false
	}
	a.Catalog.Now(a.life, Custom) //nolint:errcheck // it ends with the host
	return true
}
