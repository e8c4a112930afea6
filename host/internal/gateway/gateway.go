// Package gateway is the MCP front door: one server made of all the tools,
// resources and prompts of the catalogue, over stdio and over streamable HTTP,
// in both protocol eras.
//
// mcp-go keeps the protocol (eras, handshake, headers, sessions); what
// belongs to a server behind it passes by it. Its types would drop the
// members it does not know, so definitions and results are put into the
// answer as the bytes they were received as, by whoever writes it.
//
// What a server asks reaches the client in the form of the client's era: as a
// request to a legacy client, and to a modern one as a result that says
// input_required, after which the client's next request carries the answers
// (see rounds.go).
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Catalog is what is served, as this package needs it.
type Catalog interface {
	// Lookup finds a tool by its served name.
	Lookup(ctx context.Context, name string) (*call.Tool, bool)

	// List returns the result of a list request.
	List(ctx context.Context, kind call.Kind, modern bool) json.RawMessage

	// Locate finds the server of a prompt, resource or template by its
	// served name, and its own name there.
	Locate(ctx context.Context, kind call.Kind, name string) (server, original string, ok bool)
}

// StandIns is a catalogue in whose list some tools stand in for others.
type StandIns interface {
	// StandsIn reports whether a name is that of such a tool.
	StandsIn(name string) bool

	// Resolve carries out a call of one, and returns its result, or which
	// tool is to be called in its place, and with which arguments.
	Resolve(ctx context.Context, name string, arguments json.RawMessage) (result json.RawMessage, tool *call.Tool, args json.RawMessage, err error)
}

// Config is what the server says about itself, and whom it tells.
type Config struct {
	Name         string
	Title        string
	Version      string
	Instructions string // at most 1 KB: clients cut more

	// Profile, unless nil, finds the catalogue served at /mcp/NAME.
	Profile func(name string) (Catalog, bool)

	// Joined, unless nil, finds in place of Profile, and with "" in place of the
	// whole, what clients on errands are served: agents see themselves to it that
	// their tools fit their models, and what stands in for others is none of those.
	Joined func(profile string) (Catalog, bool)

	// Forward carries out what is no call of a tool; nil: there is nothing
	// but tools.
	Forward call.Forwarder

	// Extensions, unless nil, returns the extensions that servers declared and
	// that work through the host.
	Extensions func() map[string]any

	// OnRoots, unless nil, is told before a call which directories the
	// client offers as roots; nil when it offers none.
	OnRoots func(paths []string)

	// OnLogLevel, unless nil, is told the least level of log messages that
	// any client wants.
	OnLogLevel func(level string)
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

// A Gateway serves a catalogue to any number of clients.
type Gateway struct {
	cfg     Config
	catalog Catalog
	handler call.Handler
	mcp     *server.MCPServer
	clients clients
	watches watches
	streams streams
	seal    sealer
	parked  parkedJobs
	owned   owned
	errands atomic.Uint64
}

// any is the one tool, resource and prompt that mcp-go knows of: it stands
// for all, which are looked up when they are used.
const (
	anyName = "*"
	anyURI  = "toolroom:*"
)

// New returns a gateway.
func New(cfg Config, catalog Catalog, handler call.Handler) (*Gateway, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	seal, err := newSealer()
	if err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, catalog: catalog, handler: handler, seal: seal}
	g.owned.life, g.owned.end = context.WithCancelCause(context.Background())
	g.mcp = server.NewMCPServer(cfg.Name, cfg.Version,
		server.WithTitle(cfg.Title),
		server.WithInstructions(cfg.Instructions),
		server.WithToolCapabilities(true),
		server.WithHooks(g.hooks()),
	)
	g.mcp.AddTool(mcp.Tool{Name: anyName, RawInputSchema: json.RawMessage(`{"type":"object"}`)}, g.call)
	if cfg.Forward != nil {
		g.offerAll()
	}
	return g, nil
}

// offerAll declares what the servers may have beside tools. Which of them do
// shows only when they are started.
func (g *Gateway) offerAll() {
	for _, option := range []server.ServerOption{
		server.WithResourceCapabilities(true, true),
		server.WithPromptCapabilities(true),
		server.WithLogging(),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(completions{g}),
		server.WithResourceCompletionProvider(completions{g}),
	} {
		option(g.mcp)
	}
	g.mcp.AddResource(mcp.Resource{URI: anyURI, Name: anyName}, func(ctx context.Context, _ mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		g.forward(ctx, "resources/read", call.Resources)
		return []mcp.ResourceContents{}, nil
	})
	g.mcp.AddPrompt(mcp.Prompt{Name: anyName}, func(ctx context.Context, _ mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		g.forward(ctx, "prompts/get", call.Prompts)
		return &mcp.GetPromptResult{}, nil
	})
}

func (g *Gateway) extensions() map[string]any {
	if g.cfg.Extensions == nil {
		return nil
	}
	return g.cfg.Extensions()
}

// hooks put the servers' answers in place of mcp-go's.
func (g *Gateway) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, res *mcp.InitializeResult) {
		res.Capabilities.Extensions = g.extensions()
		g.greet(ctx)
	})
	h.AddAfterDiscover(func(_ context.Context, _ any, _ *mcp.DiscoverRequest, res *mcp.DiscoverResult) {
		res.Capabilities.Extensions = g.extensions()
	})
	h.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		req.Params.Name = anyName
		req.Params.Task = nil // whether it may be one is the server's business
	})
	h.AddBeforeReadResource(func(_ context.Context, _ any, req *mcp.ReadResourceRequest) { req.Params.URI = anyURI })
	h.AddBeforeGetPrompt(func(_ context.Context, _ any, req *mcp.GetPromptRequest) { req.Params.Name = anyName })
	h.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, res *mcp.ListToolsResult) {
		g.list(ctx, call.Tools)
		res.Tools = []mcp.Tool{}
	})
	h.AddAfterListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest, res *mcp.ListResourcesResult) {
		g.list(ctx, call.Resources)
		res.Resources = []mcp.Resource{}
	})
	h.AddAfterListResourceTemplates(func(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, res *mcp.ListResourceTemplatesResult) {
		g.list(ctx, call.Templates)
		res.ResourceTemplates = []mcp.ResourceTemplate{}
	})
	h.AddAfterListPrompts(func(ctx context.Context, _ any, _ *mcp.ListPromptsRequest, res *mcp.ListPromptsResult) {
		g.list(ctx, call.Prompts)
		res.Prompts = []mcp.Prompt{}
	})
	h.AddAfterSubscribe(func(ctx context.Context, _ any, req *mcp.SubscribeRequest, _ *mcp.EmptyResult) {
		g.subscribe(ctx, req.Params.URI)
	})
	h.AddAfterUnsubscribe(func(ctx context.Context, _ any, req *mcp.UnsubscribeRequest, _ *mcp.EmptyResult) {
		g.unsubscribe(ctx, req.Params.URI)
	})
	h.AddBeforeSubscriptionsListen(func(ctx context.Context, _ any, req *mcp.SubscriptionsListenRequest) {
		g.listen(ctx, req.Params.Notifications.ResourceSubscriptions)
	})
	h.AddAfterSetLevel(func(ctx context.Context, _ any, req *mcp.SetLevelRequest, _ *mcp.EmptyResult) {
		g.setLevel(ctx, string(req.Params.Level))
	})
	return h
}

// ServeStdio serves one client until in ends, or ctx does; see
// wire.ServeStdio.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, logf func(string, ...any)) error {
	defer g.forget(stdioID)
	return g.serve(ctx, stdioID, in, out, logf)
}

// serve serves one client more on a pair of streams.
func (g *Gateway) serve(ctx context.Context, session string, in io.Reader, out io.Writer, logf func(string, ...any)) error {
	return wire.ServeStdio(ctx, g.mcp, in, out, wire.ServeOptions{
		Logf: logf, Session: session,
		Call: func(ctx context.Context) bool { g.callTool(ctx, exchangeOf(ctx)); return true },
	})
}

// list answers a list request.
func (g *Gateway) list(ctx context.Context, kind call.Kind) {
	x := exchangeOf(ctx)
	x.answer(g.catalogOf(x).List(ctx, kind, server.IsModernRequest(ctx)))
}

func (g *Gateway) catalogOf(x exchange) Catalog {
	if h, ok := x.(*httpExchange); ok && h.catalog != nil {
		return h.catalog
	}
	if s, ok := x.(stdio); ok && s.on != nil && s.on.catalog != nil {
		return s.on.catalog
	}
	return g.catalog
}

// refuse answers with a JSON-RPC error.
func refuse(x exchange, code int, message string) {
	object, err := jsonrpc.Marshal(map[string]any{"code": code, "message": message})
	if err != nil { // a number and a string always encode
		return
	}
	x.fail(object)
}

// An exchange is one request at whichever door it came by, and the way its
// answer goes out.
type exchange interface {
	door() string
	identity() string // of the client, see call.Caller
	principal() string
	params() json.RawMessage
	bound(ctx context.Context) (context.Context, func()) // ends when the door closes
	notify(method string, params json.RawMessage)
	ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) // a legacy client
	answer(result json.RawMessage)                                                           // in place of what mcp-go would send
	fail(object json.RawMessage)                                                             // the same with a JSON-RPC error
	acknowledged() <-chan struct{}                                                           // closed when a listen stream is; call it once
}

// stdio is the exchange of a request that came over ServeStdio.
type stdio struct {
	ctx context.Context
	on  *errand // nil: its own
}

// stdioID is the identity of the one client that stdio has.
const stdioID = "stdio"

func (s stdio) door() string            { return s.on.door() }
func (s stdio) identity() string        { return s.on.identity() }
func (s stdio) principal() string       { return s.on.identity() }
func (s stdio) params() json.RawMessage { return wire.RawParams(s.ctx) }
func (s stdio) bound(ctx context.Context) (context.Context, func()) {
	return ctx, func() {} // ServeStdio's
}
func (s stdio) notify(method string, params json.RawMessage) {
	wire.Notify(s.ctx, method, params)
}
func (s stdio) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	// The connection is that of the request, the patience the asker's.
	result, fault, err := wire.Ask(withCancelOf(s.ctx, ctx), method, params)
	if err == nil && fault != nil {
		err = clientError(fault)
	}
	return result, err
}
func (s stdio) answer(result json.RawMessage) { wire.SetRawResult(s.ctx, result) }
func (s stdio) acknowledged() <-chan struct{} { return wire.Acknowledged(s.ctx) }
func (s stdio) fail(object json.RawMessage)   { wire.SetRawError(s.ctx, object) }

// withCancelOf is values' context that ends with another.
func withCancelOf(values, ends context.Context) context.Context {
	return mixed{ends, values}
}

type mixed struct {
	context.Context
	values context.Context
}

func (m mixed) Value(key any) any { return m.values.Value(key) }

// clientError is the error object that a client answered with.
func clientError(object json.RawMessage) error {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(object, &e); err != nil {
		return fmt.Errorf("the client's error is malformed: %w", err)
	}
	return &call.MCPError{Server: "client", Code: e.Code, Message: e.Message, Object: object}
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*httpExchange); ok {
		return x
	}
	on, _ := ctx.Value(errandKey{}).(*errand)
	return stdio{ctx, on}
}
