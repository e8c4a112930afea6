package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// requestFunc performs a client's request with the given params in the host, and
// returns its result. It passes notifications to notify and questions to ask.
type requestFunc func(ctx context.Context, params json.RawMessage, notify func(string, json.RawMessage), ask call.Ask) (json.RawMessage, error)

// mcpCallTool is the tool handler for mcp-go. It answers through the exchange of ctx, and
// so returns an empty result and no error.
func (g *Gateway) mcpCallTool(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	g.callTool(ctx, requestExchange(ctx))
	return &mcp.CallToolResult{}, nil
}

// callTool finds the called tool, calls it, and answers x with the result or an error.
func (g *Gateway) callTool(ctx context.Context, x exchange) {
	f, err := parseParams("tools/call", x.params())
	if err != nil {
		refuse(x, jsonrpc.CodeInvalidParams, err.Error())
		return
	}
	modern := server.IsModernRequest(ctx)
	if g.cfg.OnRoots != nil && x.entryPoint() == "stdio" && !modern {
		if paths, err := mcpkit.ClientRoots(ctx); err == nil {
			g.cfg.OnRoots(paths)
		}
	}
	g.beforeUserRequest(ctx, x)
	tool, ok := g.findTool(ctx, x, &f, modern)
	if !ok {
		return
	}
	caller := g.newCaller(x, f, modern)
	var names jsonrpc.NameSet // members of the result, which is checked here for a legacy client
	result, err := g.runRequest(ctx, x, f, caller, func(ctx context.Context, params json.RawMessage, notify func(string, json.RawMessage), ask call.Ask) (json.RawMessage, error) {
		res, err := g.handler(ctx, &call.Request{Tool: tool, Params: params, Caller: caller, OnNotify: notify, Ask: ask})
		if err != nil {
			return nil, err
		}
		if !modern {
			names = res.Names
		}
		return res.Raw, nil
	})
	var answered *call.MCPError
	var invalid *requestError
	switch {
	case errors.As(err, &answered):
		x.fail(answered.Object)
	case errors.As(err, &invalid):
		refuse(x, invalid.code, invalid.Error())
	case err != nil:
		x.answer(completeForClient(ErrorResult(err), modern, false))
	case !modern && (&call.Result{Raw: result, Names: names}).RequiresInput():
		x.answer(ErrorResult(toolerr.New(toolerr.ProtocolError,
			"%s requests input in a way that this client's protocol version does not support; use a client with version 2026-07-28", f.name)))
	case !modern && !tool.Validates && names.MayHave("structuredContent") && names.MayHave("resultType"):
		x.answer(structuredForLegacy(result))
	default:
		x.answer(completeForClient(result, modern, false))
	}
}

// beforeUserRequest calls Config.OnUser, and waits for it, if a signed-in user sent the
// request.
func (g *Gateway) beforeUserRequest(ctx context.Context, x exchange) {
	if h, ok := x.(*httpExchange); ok && h.user != "" && g.cfg.OnUser != nil {
		g.cfg.OnUser(ctx, h.caller())
	}
}

// findTool returns the tool that a request calls. For a call of a meta-tool that calls
// another tool, it returns that tool and changes f to call it. It returns false after it
// has answered the request itself: the tool does not exist or is not served now, the
// headers differ from the arguments, or the meta-tool has a result or an error.
func (g *Gateway) findTool(ctx context.Context, x exchange, f *requestParams, modern bool) (*call.Tool, bool) {
	catalog := g.catalogOf(x)
	if s, ok := catalog.(MetaTools); ok && s.IsMetaTool(f.name) {
		arguments := f.arguments
		if arguments == nil || string(arguments) == "null" {
			arguments = json.RawMessage(`{}`)
		}
		result, tool, args, err := s.CallMetaTool(ctx, f.name, arguments)
		if err == nil && tool != nil {
			err = f.redirect(tool.Name, args)
		}
		switch {
		case err != nil:
			x.answer(completeForClient(ErrorResult(err), modern, false))
			return nil, false
		case tool == nil:
			x.answer(completeForClient(result, modern, false))
			return nil, false
		}
		return tool, true // no client puts another tool's arguments into headers
	}
	tool, ok := catalog.Lookup(ctx, f.name)
	if !ok {
		if e, explains := catalog.(Explainer); explains {
			if err := e.WhyUnavailable(ctx, f.name); err != nil {
				x.answer(completeForClient(ErrorResult(err), modern, false))
				return nil, false
			}
		}
		unknown := unknownTool(f.name)
		refuse(x, unknown.code, unknown.Error())
		return nil, false
	}
	if tool.Unlisted != nil {
		return checkedWhenListed(x, tool), true
	}
	if err := checkHeaders(x, tool); err != nil {
		refuse(x, mcp.HEADER_MISMATCH, err.Error())
		return nil, false
	}
	return tool, true
}

// runRequest calls perform with the request's params and returns its result. A modern
// client gets questions as rounds (see runInRounds), a legacy client as requests. If the
// server stopped or the client cancelled the request, the error says so.
func (g *Gateway) runRequest(ctx context.Context, x exchange, f requestParams, caller call.Caller, perform requestFunc) (result json.RawMessage, err error) {
	ctx, release := x.endWithServer(ctx)
	defer release()
	defer func() {
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = toolerr.New(toolerr.CodeOf(ctx.Err()), "%s was not finished: %w", f.name, context.Cause(ctx))
		}
	}()
	if caller.Modern && (f.state != nil || declaresAny(caller.Capabilities)) {
		return g.runInRounds(ctx, x, f, caller, perform)
	}
	if !caller.Modern {
		defer func() { g.elicited.recordError(err, caller.ID) }()
	}
	var ask call.Ask
	if !caller.Modern && declaresAny(caller.Capabilities) {
		ask = g.parked.limit.wrapAsk(caller.ID, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if err := checkDeclared(caller.Capabilities, method, params); err != nil {
				return nil, err
			}
			g.elicited.record(call.AskingServer(ctx), params, caller.ID)
			return x.ask(ctx, method, params)
		})
	}
	return perform(ctx, f.params, filterLogs(caller, x.notify), ask)
}

// forwardRequest handles a request about one resource, template or prompt: it forwards the
// request to the server that has it and answers with its result or error.
func (g *Gateway) forwardRequest(ctx context.Context, method string, kind call.ListKind) {
	x := requestExchange(ctx)
	modern := server.IsModernRequest(ctx)
	f, err := parseParams(method, x.params())
	if err != nil {
		refuse(x, jsonrpc.CodeInvalidParams, err.Error())
		return
	}
	of, original, ok := g.catalogOf(x).Locate(ctx, kind, f.name)
	if !ok {
		refuseNotFound(x, kind, f.name, modern)
		return
	}
	own := f
	own.params = f.withName(original)
	caller := g.newCaller(x, f, modern)
	result, err := g.runRequest(ctx, x, own, caller, func(ctx context.Context, params json.RawMessage, notify func(string, json.RawMessage), ask call.Ask) (json.RawMessage, error) {
		return g.cfg.Forward(ctx, &call.UpstreamRequest{Server: of, Method: method, Params: params, Caller: caller, OnNotify: notify, Ask: ask})
	})
	if err == nil && method == "resources/read" && original != f.name {
		result = withURI(result, original, f.name)
	}
	g.answerForwarded(x, method, result, err, modern)
}

// answerForwarded answers x with the result of the upstream, completed for the client's
// version, or with the error as a JSON-RPC error.
func (g *Gateway) answerForwarded(x exchange, method string, result json.RawMessage, err error, modern bool) {
	var answered *call.MCPError
	switch {
	case errors.As(err, &answered):
		x.fail(answered.Object)
	case err != nil:
		object, fault := jsonrpc.Marshal(map[string]any{
			"code": jsonrpc.CodeInternal, "message": err.Error(), "data": map[string]string{"code": string(toolerr.CodeOf(err))},
		})
		if fault == nil {
			x.fail(object)
		}
	default:
		x.answer(completeForClient(result, modern, method == "resources/read"))
	}
}

// refuseNotFound answers x with the JSON-RPC error for an unknown prompt or resource, whose code
// depends on modern.
func refuseNotFound(x exchange, kind call.ListKind, name string, modern bool) {
	if kind == call.Prompts {
		refuse(x, jsonrpc.CodeInvalidParams, "unknown prompt "+quoted(name)+"; prompts/list lists the prompts")
		return
	}
	code := mcp.RESOURCE_NOT_FOUND
	if modern {
		code = jsonrpc.CodeInvalidParams
	}
	object, err := jsonrpc.Marshal(map[string]any{
		"code": code, "message": "no server has the resource " + quoted(name), "data": map[string]string{"uri": name},
	})
	if err == nil {
		x.fail(object)
	}
}

// completions passes completion/complete to the server of the prompt or template.
type completions struct{ g *Gateway }

// CompletePromptArgument is called by mcp-go for a ref/prompt.
func (c completions) CompletePromptArgument(ctx context.Context, _ string, _ mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	c.g.answerCompletion(ctx, call.Prompts)
	return &mcp.Completion{}, nil
}

// CompleteResourceArgument is called by mcp-go for a ref/resource.
func (c completions) CompleteResourceArgument(ctx context.Context, _ string, _ mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	c.g.answerCompletion(ctx, call.Templates)
	return &mcp.Completion{}, nil
}

// answerCompletion forwards completion/complete to the server of the prompt or resource template,
// and answers with its result or error: no values if the server has no completions.
func (g *Gateway) answerCompletion(ctx context.Context, kind call.ListKind) {
	const method = "completion/complete"
	x := requestExchange(ctx)
	modern := server.IsModernRequest(ctx)
	f, err := parseParams(method, x.params())
	if err != nil {
		refuse(x, jsonrpc.CodeInvalidParams, err.Error())
		return
	}
	of, original, ok := g.catalogOf(x).Locate(ctx, kind, f.name)
	if !ok {
		refuse(x, jsonrpc.CodeInvalidParams, "nothing is served under the name "+quoted(f.name))
		return
	}
	ctx, release := x.endWithServer(ctx)
	defer release()
	result, err := g.cfg.Forward(ctx, &call.UpstreamRequest{Server: of, Method: method, Params: f.withName(original), Caller: g.newCaller(x, f, modern)})
	var answered *call.MCPError
	if errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound {
		result, err = json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`), nil
	}
	g.answerForwarded(x, method, result, err, modern)
}

// quoted returns a name as a JSON string, for messages.
func quoted(name string) string { return string(jsonrpc.AppendString(nil, name)) }
