// Package gateway is the MCP front door: one server made of all the tools of
// the catalogue, over stdio and over streamable HTTP, in both protocol eras.
//
// mcp-go keeps the protocol (eras, handshake, headers, sessions); what
// belongs to a tool passes by it. Its types would drop the members it does
// not know, so definitions and results are put into the answer as the bytes
// they were received as, by whoever writes it.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Tools is the catalogue as this package needs it.
type Tools interface {
	Lookup(ctx context.Context, name string) (*call.Tool, bool)
	List(ctx context.Context, modern bool) json.RawMessage // the result of tools/list
}

// Config is what the server says about itself.
type Config struct {
	Name         string
	Title        string
	Version      string
	Instructions string // at most 1 KB: clients cut more

	// OnRoots, unless nil, is told before a call which directories the
	// client offers as roots; nil when it offers none.
	OnRoots func(paths []string)
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("gateway: name is empty")
	case len(c.Instructions) > 1024:
		return fmt.Errorf("gateway: instructions have %d bytes, more than 1024", len(c.Instructions))
	}
	return nil
}

// A Gateway serves tools to any number of clients.
type Gateway struct {
	cfg     Config
	tools   Tools
	handler call.Handler
	mcp     *server.MCPServer
}

// anyTool is the one tool that mcp-go knows of: it stands for all, which are
// looked up when they are called.
const anyTool = "*"

// New returns a gateway.
func New(cfg Config, tools Tools, handler call.Handler) (*Gateway, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, tools: tools, handler: handler}
	hooks := &server.Hooks{}
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		req.Params.Name = anyTool
		req.Params.Task = nil // whether it may be one is the server's business
	})
	hooks.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, res *mcp.ListToolsResult) {
		exchangeOf(ctx).answer(g.tools.List(ctx, server.IsModernRequest(ctx)))
		res.Tools = []mcp.Tool{}
	})
	g.mcp = server.NewMCPServer(cfg.Name, cfg.Version,
		server.WithTitle(cfg.Title),
		server.WithInstructions(cfg.Instructions),
		server.WithToolCapabilities(true),
		server.WithHooks(hooks),
	)
	g.mcp.AddTool(mcp.Tool{Name: anyTool, RawInputSchema: json.RawMessage(`{"type":"object"}`)}, g.call)
	return g, nil
}

// ServeStdio serves one client until in ends, or ctx does; see
// mcpkit.ServeStdio.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, logf func(string, ...any)) error {
	return mcpkit.ServeStdio(ctx, g.mcp, in, out, mcpkit.ServeOptions{Logf: logf})
}

// ToolsChanged tells every client that listens that the list has changed.
func (g *Gateway) ToolsChanged() {
	g.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
}

// An exchange is one request at whichever door it came by, and the way its
// answer goes out.
type exchange interface {
	door() string
	params() json.RawMessage
	bound(ctx context.Context) (context.Context, func()) // ends when the door closes
	notify(method string, params json.RawMessage)
	answer(result json.RawMessage) // in place of what mcp-go would send
	fail(object json.RawMessage)   // the same with a JSON-RPC error
}

// call answers tools/call.
func (g *Gateway) call(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	x := exchangeOf(ctx)
	modern := server.IsModernRequest(ctx)
	name, err := toolName(x.params())
	if err != nil {
		return refuse(x, jsonrpc.CodeInvalidParams, err.Error())
	}
	if g.cfg.OnRoots != nil && x.door() == "stdio" && !modern {
		if paths, err := mcpkit.ClientRoots(ctx); err == nil {
			g.cfg.OnRoots(paths)
		}
	}
	tool, ok := g.tools.Lookup(ctx, name)
	if !ok {
		return refuse(x, jsonrpc.CodeInvalidParams, "unknown tool "+string(jsonrpc.AppendString(nil, name))+"; tools/list names those there are")
	}
	if err := checkHeaders(x, tool); err != nil {
		return refuse(x, mcp.HEADER_MISMATCH, err.Error())
	}
	ctx, release := x.bound(ctx)
	defer release()
	res, err := g.handler(ctx, &call.Request{
		Tool: tool, Params: x.params(), OnNotify: x.notify,
		Caller: call.Caller{Door: x.door(), Modern: modern},
	})
	var answered *call.MCPError
	switch {
	case errors.As(err, &answered):
		x.fail(answered.Object)
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		x.answer(finish(ErrorResult(tool, toolerr.New(toolerr.CodeOf(ctx.Err()), "%s was not finished: %w", name, context.Cause(ctx))), modern))
	case err != nil:
		x.answer(finish(ErrorResult(tool, err), modern))
	case !modern && asksForInput(res.Raw):
		x.answer(ErrorResult(tool, toolerr.New(toolerr.ProtocolError,
			"%s asks for more input in a way that this client's protocol version does not have; use a client of version 2026-07-28", name)))
	default:
		x.answer(finish(res.Raw, modern))
	}
	return &mcp.CallToolResult{}, nil
}

// refuse answers with a JSON-RPC error.
func refuse(x exchange, code int, message string) (*mcp.CallToolResult, error) {
	object, err := jsonrpc.Marshal(map[string]any{"code": code, "message": message})
	if err != nil {
		return nil, err
	}
	x.fail(object)
	return &mcp.CallToolResult{}, nil
}

// stdio is the exchange of a request that came over ServeStdio.
type stdio struct{ ctx context.Context }

func (s stdio) door() string            { return "stdio" }
func (s stdio) params() json.RawMessage { return mcpkit.RawParams(s.ctx) }
func (s stdio) bound(ctx context.Context) (context.Context, func()) {
	return ctx, func() {} // ServeStdio's
}
func (s stdio) notify(method string, params json.RawMessage) {
	mcpkit.Notify(s.ctx, method, params)
}
func (s stdio) answer(result json.RawMessage) { mcpkit.SetRawResult(s.ctx, result) }
func (s stdio) fail(object json.RawMessage)   { mcpkit.SetRawError(s.ctx, object) }

type exchangeKey struct{}

func exchangeOf(ctx context.Context) exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*httpExchange); ok {
		return x
	}
	return stdio{ctx}
}
