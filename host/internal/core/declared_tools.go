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

// buildDeclared creates the declared tools of the snapshot next. It reuses those of before
// whose declaration is unchanged.
func (a *App) buildDeclared(next, before *snapshot) error {
	next.declared, next.stored = map[string]*declared.Tool{}, map[string]bool{}
	declare := func(spec manifest.Tool) error {
		if _, taken := next.byName[declared.ServedName(spec)]; taken {
			return dialect.Problems{spec.Problem("name", "its served name %s is the name of a server", declared.ServedName(spec))}
		}
		var t *declared.Tool
		if before != nil {
			if old := before.declared[declared.ServedName(spec)]; old != nil && reflect.DeepEqual(old.Spec.WithoutLocation(), spec.WithoutLocation()) {
				t = old
			}
		}
		if t == nil {
			var err error
			if t, err = declared.New(spec, a.executorDeps()); err != nil {
				return err
			}
		}
		next.declared[t.Name()] = t
		next.tools = append(next.tools, t)
		return nil
	}
	for _, spec := range next.cfg.Declared {
		if err := declare(spec); err != nil {
			return err
		}
	}
	for _, spec := range a.storedSpecs(next) {
		if err := declare(spec); err != nil {
			return err
		}
		next.stored[declared.ServedName(spec)] = true
	}
	return nil
}

// declaredSourceConfig returns the catalog entry of a declared tool. For an alias it includes
// the names of the target; depth is the number of aliases followed so far, at most
// maxDepth.
func (s *snapshot) declaredSourceConfig(t *declared.Tool, depth int) catalog.SourceConfig {
	e := t.SourceConfig()
	if t.Spec.MCP == nil || depth > maxDepth {
		return e
	}
	server, own := t.Spec.MCP.Server, t.Spec.MCP.Tool
	e.AliasOf = catalog.AliasTarget{Server: server, Tool: own}
	if one, ok := s.byName[server]; ok && !one.off {
		e.TargetNames = one.entry.Names(own)
	} else if next, ok := s.declared[server]; ok { // each declared tool is a server
		e.TargetNames = s.declaredSourceConfig(next, depth+1).Names(own)
	}
	return e
}

// executorDeps returns the host's functions that the executors of declared tools call.
func (a *App) executorDeps() declared.Deps {
	return declared.Deps{
		Call: a.callStep, Journal: chainJournal{a}, Forward: a.callServerTool, Run: a.spawner.RunOnce, Lookup: os.LookupEnv,
		Retry: func() retry.Config { return a.currentPipeline().cfg.Retry }, Agent: "toolroom/" + a.version,
	}
}

// maxDepth bounds nested calls, in case they form a cycle.
const maxDepth = 8

// nestedCaller returns the caller of req for a call that is part of req, one level deeper.
// It returns an error beyond maxDepth.
func nestedCaller(req *call.Request) (call.Caller, error) {
	caller := req.Caller
	if caller.Depth++; caller.Depth > maxDepth {
		return caller, toolerr.New(toolerr.LimitReached, "%s is nested in %d other calls; the limit is %d", req.Tool.Name, req.Caller.Depth, maxDepth)
	}
	return caller, nil
}

// callStep calls a served tool as part of parent, for the same caller and through the
// whole pipeline. It returns TOOL_NOT_FOUND for an unknown name.
func (a *App) callStep(ctx context.Context, parent *call.Request, name string, arguments json.RawMessage) (*call.Result, error) {
	caller, err := nestedCaller(parent)
	if err != nil {
		return nil, err
	}
	tool, ok := a.Catalog.View().Lookup(ctx, name)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q", name)
	}
	// A question of the step's server goes through Ask. As a result with
	// input_required it could not be passed on, since the client has not sent this
	// step.
	caller.Modern = false
	params := append(append(jsonrpc.AppendString([]byte(`{"name":`), name), `,"arguments":`...), arguments...)
	params = append(append(params, traceMember(parent.Params)...), '}')
	return a.Handler(ctx, &call.Request{Tool: tool, Params: params, Caller: caller, OnNotify: parent.OnNotify, Ask: parent.Ask})
}

// traceMember returns the member _meta with the trace context (traceparent, tracestate,
// baggage) of params, with a leading comma; nil if params has no trace context.
func traceMember(params json.RawMessage) json.RawMessage {
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

// callServerTool calls a server's tool by its original name, through the whole pipeline and
// under whatever name it is served. It returns TOOL_NOT_FOUND if the server does not list
// it, and an error if the calls are nested too deep.
func (a *App) callServerTool(ctx context.Context, req *call.Request, server, original string) (*call.Result, error) {
	caller, err := nestedCaller(req)
	if err != nil {
		return nil, err
	}
	tool, ok := a.findOriginal(ctx, server, original)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, toolerr.New(toolerr.ToolNotFound, "server %s has no tool %q, or it is offline", server, original)
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

// findOriginal returns the tool that a server lists under an original name; false without
// one. If it is not known yet, it waits until the servers are listed or ctx ends. For a
// server that could not be listed so far, it returns a tool with Unlisted set.
func (a *App) findOriginal(ctx context.Context, server, original string) (*call.Tool, bool) {
	find := func(tools []*call.Tool) (*call.Tool, bool) {
		i := slices.IndexFunc(tools, func(t *call.Tool) bool { return t.Server == server && t.Original == original })
		if i < 0 {
			return nil, false
		}
		return tools[i], true
	}
	// Try the usual served name first, so that only its server is asked.
	if t, ok := a.Catalog.Lookup(ctx, catalog.ServedName(server, original, false)); ok && t.Server == server && t.Original == original {
		return t, true
	}
	if t, ok := find(a.Catalog.Snapshot(ctx).Tools()); ok {
		return t, true
	}
	return a.Catalog.UnlistedTool(server, original)
}

// callDeclared makes a call of a declared tool with its executor. The end of the host
// cancels the call.
func (a *App) callDeclared(ctx context.Context, t *declared.Tool, req *call.Request) (*call.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.life, cancel)() //nolint:errcheck // it does not matter whether it ran
	return t.Handle(ctx, req)
}

// addDeclaredTimeouts adds the timeout_ms of the declared tools to timeouts, by served
// name.
func addDeclaredTimeouts(cfg config.Config, timeouts map[string]time.Duration) {
	for _, spec := range cfg.Declared {
		if spec.Timeout > 0 {
			timeouts[declared.ServedName(spec)] = spec.Timeout
		}
	}
}
