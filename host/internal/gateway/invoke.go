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

// work carries out a request, once it is known what of it goes to the server.
type work func(ctx context.Context, params json.RawMessage, notify func(string, json.RawMessage), ask call.Ask) (json.RawMessage, error)

// call answers tools/call.
func (g *Gateway) call(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	g.callTool(ctx, exchangeOf(ctx))
	return &mcp.CallToolResult{}, nil
}

func (g *Gateway) callTool(ctx context.Context, x exchange) {
	f, err := readFront("tools/call", x.params())
	if err != nil {
		refuse(x, jsonrpc.CodeInvalidParams, err.Error())
		return
	}
	modern := server.IsModernRequest(ctx)
	if g.cfg.OnRoots != nil && x.door() == "stdio" && !modern {
		if paths, err := mcpkit.ClientRoots(ctx); err == nil {
			g.cfg.OnRoots(paths)
		}
	}
	tool, ok := g.target(ctx, x, &f, modern)
	if !ok {
		return
	}
	caller := g.caller(x, f, modern)
	var names jsonrpc.NameSet // of the result, which of a legacy client's call is made here
	result, err := g.carry(ctx, x, f, caller, func(ctx context.Context, params json.RawMessage, notify func(string, json.RawMessage), ask call.Ask) (json.RawMessage, error) {
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
	switch {
	case errors.As(err, &answered):
		x.fail(answered.Object)
	case err != nil:
		x.answer(finish(ErrorResult(err), modern, false))
	case !modern && (&call.Result{Raw: result, Names: names}).AsksForInput():
		x.answer(ErrorResult(toolerr.New(toolerr.ProtocolError,
			"%s requests input in a way that this client's protocol version does not support; use a client with version 2026-07-28", f.name)))
	case !modern && !tool.Validates && names.MayHave("structuredContent") && names.MayHave("resultType"):
		x.answer(structuredLegacy(result))
	default:
		x.answer(finish(result, modern, false))
	}
}

// target finds the tool that a call is of, or answers. Of a call of one that
// stands in for others it makes the call of the tool that is meant.
func (g *Gateway) target(ctx context.Context, x exchange, f *front, modern bool) (*call.Tool, bool) {
	catalog := g.catalogOf(x)
	if s, ok := catalog.(StandIns); ok && s.StandsIn(f.name) {
		arguments := f.arguments
		if arguments == nil || string(arguments) == "null" {
			arguments = json.RawMessage(`{}`)
		}
		result, tool, args, err := s.Resolve(ctx, f.name, arguments)
		if err == nil && tool != nil {
			err = f.redirect(tool.Name, args)
		}
		switch {
		case err != nil:
			x.answer(finish(ErrorResult(err), modern, false))
			return nil, false
		case tool == nil:
			x.answer(finish(result, modern, false))
			return nil, false
		}
		return tool, true // no client makes headers of another tool's arguments
	}
	tool, ok := catalog.Lookup(ctx, f.name)
	if !ok {
		refuse(x, jsonrpc.CodeInvalidParams, "unknown tool "+quoted(f.name)+"; tools/list lists the tools")
		return nil, false
	}
	if err := checkHeaders(x, tool); err != nil {
		refuse(x, mcp.HEADER_MISMATCH, err.Error())
		return nil, false
	}
	return tool, true
}

// carry has a request carried out for a client of either era. One that the end
// of the door or of the request cut off says so.
func (g *Gateway) carry(ctx context.Context, x exchange, f front, caller call.Caller, do work) (result json.RawMessage, err error) {
	ctx, release := x.bound(ctx)
	defer release()
	defer func() {
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = toolerr.New(toolerr.CodeOf(ctx.Err()), "%s was not finished: %w", f.name, context.Cause(ctx))
		}
	}()
	if caller.Modern && (f.state != nil || declaresAny(caller.Capabilities)) {
		return g.rounds(ctx, x, f, caller, do)
	}
	var ask call.Ask
	if !caller.Modern && declaresAny(caller.Capabilities) {
		ask = g.parked.asking.bounded(caller.ID, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if err := declared(caller.Capabilities, method, params); err != nil {
				return nil, err
			}
			return x.ask(ctx, method, params)
		})
	}
	return do(ctx, f.params, admitting(caller, x.notify), ask)
}

// forward answers a request about a resource or prompt.
func (g *Gateway) forward(ctx context.Context, method string, kind call.Kind) {
	x := exchangeOf(ctx)
	modern := server.IsModernRequest(ctx)
	f, err := readFront(method, x.params())
	if err != nil {
		refuse(x, jsonrpc.CodeInvalidParams, err.Error())
		return
	}
	of, original, ok := g.catalogOf(x).Locate(ctx, kind, f.name)
	if !ok {
		notFound(x, kind, f.name, modern)
		return
	}
	own := f
	own.params = f.renamed(original)
	caller := g.caller(x, f, modern)
	result, err := g.carry(ctx, x, own, caller, func(ctx context.Context, params json.RawMessage, notify func(string, json.RawMessage), ask call.Ask) (json.RawMessage, error) {
		return g.cfg.Forward(ctx, &call.Message{Server: of, Method: method, Params: params, Caller: caller, OnNotify: notify, Ask: ask})
	})
	if err == nil && method == "resources/read" && original != f.name {
		result = withURI(result, original, f.name)
	}
	g.reply(x, method, result, err, modern)
}

// reply answers with what a server answered, or why it did not.
func (g *Gateway) reply(x exchange, method string, result json.RawMessage, err error, modern bool) {
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
		x.answer(finish(result, modern, method == "resources/read"))
	}
}

func notFound(x exchange, kind call.Kind, name string, modern bool) {
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

// completions passes completion/complete to the server of the prompt or
// template.
type completions struct{ g *Gateway }

// CompletePromptArgument is called by mcp-go for a ref/prompt.
func (c completions) CompletePromptArgument(ctx context.Context, _ string, _ mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	c.g.complete(ctx, call.Prompts)
	return &mcp.Completion{}, nil
}

// CompleteResourceArgument is called by mcp-go for a ref/resource.
func (c completions) CompleteResourceArgument(ctx context.Context, _ string, _ mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	c.g.complete(ctx, call.Templates)
	return &mcp.Completion{}, nil
}

func (g *Gateway) complete(ctx context.Context, kind call.Kind) {
	const method = "completion/complete"
	x := exchangeOf(ctx)
	modern := server.IsModernRequest(ctx)
	f, err := readFront(method, x.params())
	if err != nil {
		refuse(x, jsonrpc.CodeInvalidParams, err.Error())
		return
	}
	of, original, ok := g.catalogOf(x).Locate(ctx, kind, f.name)
	if !ok {
		refuse(x, jsonrpc.CodeInvalidParams, "nothing is served under the name "+quoted(f.name))
		return
	}
	ctx, release := x.bound(ctx)
	defer release()
	result, err := g.cfg.Forward(ctx, &call.Message{Server: of, Method: method, Params: f.renamed(original), Caller: g.caller(x, f, modern)})
	var answered *call.MCPError
	if errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound {
		result, err = json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`), nil
	}
	g.reply(x, method, result, err, modern)
}

func quoted(name string) string { return string(jsonrpc.AppendString(nil, name)) }
