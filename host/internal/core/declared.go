package core

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// declare makes the declared tools. One that is declared as before is that of
// before.
func (a *App) declare(p, before *present) error {
	p.declared, p.registered = map[string]*declared.Tool{}, map[string]bool{}
	declare := func(spec manifest.Tool) error {
		if _, taken := p.byName[declared.Served(spec)]; taken {
			return dialect.Problems{spec.Problem("name", "its served name %s is the name of a server", declared.Served(spec))}
		}
		var t *declared.Tool
		if before != nil {
			if old := before.declared[declared.Served(spec)]; old != nil && reflect.DeepEqual(old.Spec.Placeless(), spec.Placeless()) {
				t = old
			}
		}
		if t == nil {
			var err error
			if t, err = declared.New(spec, a.deps()); err != nil {
				return err
			}
		}
		p.declared[t.Name()] = t
		p.tools = append(p.tools, t)
		return nil
	}
	for _, spec := range p.cfg.Declared {
		if err := declare(spec); err != nil {
			return err
		}
	}
	for _, spec := range a.registered(p) {
		if err := declare(spec); err != nil {
			return err
		}
		p.registered[declared.Served(spec)] = true
	}
	return nil
}

// declaredEntry is a declared tool as the catalogue sees it, with the names of
// the tool that it is another name of.
func (p *present) declaredEntry(t *declared.Tool, depth int) catalog.Entry {
	e := t.Entry()
	if t.Spec.MCP == nil || depth > maxDepth {
		return e
	}
	server, own := t.Spec.MCP.Server, t.Spec.MCP.Tool
	e.Of = catalog.Target{Server: server, Tool: own}
	if one, ok := p.byName[server]; ok && !one.off {
		e.Also = one.entry.Names(own)
	} else if next, ok := p.declared[server]; ok { // a declared tool is a server of its own
		e.Also = p.declaredEntry(next, depth+1).Names(own)
	}
	return e
}

// deps are what executors need of the host.
func (a *App) deps() declared.Deps {
	return declared.Deps{
		Call: a.callStep, Journal: journal{a}, Forward: a.callServer, Run: a.spawner.RunOnce, Lookup: os.LookupEnv,
		Retry: func() retry.Config { return a.way().cfg.Retry }, Agent: "toolroom/" + a.version,
	}
}

// maxDepth bounds calls within calls, should they go in circles.
const maxDepth = 8

// deeper is a caller whose call is made for that of another.
func deeper(req *call.Request) (call.Caller, error) {
	caller := req.Caller
	if caller.Depth++; caller.Depth > maxDepth {
		return caller, toolerr.New(toolerr.LimitReached, "%s is nested in %d other calls; the limit is %d", req.Tool.Name, req.Caller.Depth, maxDepth)
	}
	return caller, nil
}

// callStep makes a call of a served tool for one that is being carried out, as
// its caller.
func (a *App) callStep(ctx context.Context, parent *call.Request, name string, arguments json.RawMessage) (*call.Result, error) {
	caller, err := deeper(parent)
	if err != nil {
		return nil, err
	}
	tool, ok := a.Catalog.Lookup(ctx, name)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q", name)
	}
	// A question of the step's server is no result that could go on being used:
	// it is asked through Ask, and not passed on to a client of this era.
	caller.Modern = false
	params := append(append(jsonrpc.AppendString([]byte(`{"name":`), name), `,"arguments":`...), arguments...)
	params = append(append(params, traceOf(parent.Params)...), '}')
	return a.Handler(ctx, &call.Request{Tool: tool, Params: params, Caller: caller, OnNotify: parent.OnNotify, Ask: parent.Ask})
}

// traceOf is the _meta member by which calls are traced, with a comma before.
func traceOf(params json.RawMessage) json.RawMessage {
	if !bytes.Contains(params, []byte("traceparent")) {
		return nil
	}
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	kept := map[string]json.RawMessage{}
	for _, name := range []string{"traceparent", "tracestate", "baggage"} {
		if value, ok := p.Meta[name]; ok {
			kept[name] = value
		}
	}
	raw, err := jsonrpc.Marshal(kept)
	if err != nil {
		return nil
	}
	return append([]byte(`,"_meta":`), raw...)
}

// callServer carries out a call as one of a server's tool, whatever that is
// served as.
func (a *App) callServer(ctx context.Context, req *call.Request, server, own string) (*call.Result, error) {
	caller, err := deeper(req)
	if err != nil {
		return nil, err
	}
	tool, ok := a.toolOf(ctx, server, own)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, toolerr.New(toolerr.ToolNotFound, "server %s has no tool %q, or it is offline", server, own)
	}
	params := req.Params
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	params, err = jsonrpc.SetMember(params, "name", jsonrpc.AppendString(nil, tool.Name))
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "params of tools/call: %w", err)
	}
	return a.Handler(ctx, &call.Request{Tool: tool, Params: params, Caller: caller, OnNotify: req.OnNotify, Ask: req.Ask})
}

// toolOf finds a server's tool by the server's own name for it, asking the
// server for its list if need be.
func (a *App) toolOf(ctx context.Context, server, own string) (*call.Tool, bool) {
	find := func(tools []*call.Tool) (*call.Tool, bool) {
		i := slices.IndexFunc(tools, func(t *call.Tool) bool { return t.Server == server && t.Original == own })
		if i < 0 {
			return nil, false
		}
		return tools[i], true
	}
	// By its usual name first, so that only its server is asked.
	if t, ok := a.Catalog.Lookup(ctx, catalog.ServedName(server, own, false)); ok && t.Server == server && t.Original == own {
		return t, true
	}
	return find(a.Catalog.Snapshot(ctx).Tools())
}

// handleDeclared carries out a call of a declared tool. It ends with the host.
func (a *App) handleDeclared(ctx context.Context, t *declared.Tool, req *call.Request) (*call.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.life, cancel)() //nolint:errcheck // whether it ran does not matter
	return t.Handle(ctx, req)
}

// sayDeclared adds how long calls of declared tools may take.
func sayDeclared(cfg config.Config, timeouts map[string]time.Duration) {
	for _, spec := range cfg.Declared {
		if spec.Timeout > 0 {
			timeouts[declared.Served(spec)] = spec.Timeout
		}
	}
}
