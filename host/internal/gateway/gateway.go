// Package gateway serves MCP: one server with all tools, resources and prompts of the
// catalog, over stdio and streamable HTTP, in both protocol eras.
//
// mcp-go handles the protocol: eras, handshake, headers and sessions. Data of
// upstreams bypasses it, because its types drop unknown members: definitions and
// results are written into the answer as the bytes that were received.
//
// A request of an upstream reaches the client in the form of the client's era: as a
// request to a legacy client, and as a result with input_required to a modern one,
// whose next request carries the answers (see input_required.go).
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
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// Catalog is the interface of the gateway to the served tools, resources and prompts.
type Catalog interface {
	// Lookup returns the tool for a call of a served name. ok is false if none exists. If
	// a server that may have the tool could not be listed so far, Unlisted is set.
	Lookup(ctx context.Context, name string) (*call.Tool, bool)

	// List returns the result of a list request.
	List(ctx context.Context, kind call.ListKind, modern bool) json.RawMessage

	// Locate returns the server of a prompt, resource or template by its served name,
	// and its original name there.
	Locate(ctx context.Context, kind call.ListKind, name string) (server, original string, ok bool)
}

// MetaTools is a catalog that lists meta-tools (such as search_tools and call_tool)
// instead of some tools.
type MetaTools interface {
	// IsMetaTool reports whether name is a meta-tool.
	IsMetaTool(name string) bool

	// CallMetaTool runs a call of a meta-tool. It returns its result, or the tool that must
	// be called instead with its arguments.
	CallMetaTool(ctx context.Context, name string, arguments json.RawMessage) (result json.RawMessage, tool *call.Tool, args json.RawMessage, err error)
}

// Explainer is a catalog that knows why it does not serve some tools.
type Explainer interface {
	// WhyUnavailable returns the error of a call of a tool that Lookup does not find and
	// that is configured; nil: there is no such tool.
	WhyUnavailable(ctx context.Context, name string) error
}

// Config configures a Gateway.
type Config struct {
	Name         string
	Title        string
	Version      string
	Instructions string // at most 1 KB: clients truncate more

	// Profile returns the catalog served at /mcp/NAME. nil: there are no profiles.
	Profile func(name string) (Catalog, bool)

	// DelegatedCatalog returns the catalog for clients that call on behalf of a
	// caller, by profile; "" is the whole catalog. Such clients are agents, which fit
	// the tools to their models themselves, so this catalog has no meta-tools. nil:
	// they get the same catalogs as others.
	DelegatedCatalog func(profile string) (Catalog, bool)

	// Forward handles requests other than tools/call; nil: only tools are served.
	Forward call.Forwarder

	// Extensions returns the extensions that upstreams declare and that work through
	// the host. It may be nil.
	Extensions func() map[string]any

	// OnRoots is called before a call with the directories that the client has as
	// roots; nil if it has none. It may be nil.
	OnRoots func(paths []string)

	// OnUser is called before a signed-in user lists or calls tools, which waits for it.
	// It may be nil.
	OnUser func(ctx context.Context, caller call.Caller)

	// OnLogLevel is called with the lowest log level that any client wants. It may be
	// nil.
	OnLogLevel func(level string)
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("gateway: name is empty")
	case len(c.Instructions) > 1024:
		return fmt.Errorf("gateway: instructions have %d bytes, more than 1024", len(c.Instructions))
	}
	return nil
}

// A Gateway serves a catalog to any number of clients. It is safe for concurrent use.
type Gateway struct {
	cfg                 Config
	catalog             Catalog
	handler             call.Handler
	mcp                 *server.MCPServer
	clients             legacyClients
	subscriptions       subscriptions
	elicited            elicitations
	subscriptionStreams subscriptionStreams
	sealer              sealer
	parked              parkedJobs
	background          backgroundTasks
	delegations         atomic.Uint64
}

// mcp-go knows only one tool, resource and prompt with these names. They represent all
// others, which the gateway looks up itself.
const (
	anyName = "*"
	anyURI  = "toolroom:*"
)

// New returns a gateway. It returns an error if cfg is not valid.
func New(cfg Config, catalog Catalog, handler call.Handler) (*Gateway, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	seal, err := newSealer()
	if err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, catalog: catalog, handler: handler, sealer: seal}
	g.background.life, g.background.end = context.WithCancelCause(context.Background())
	g.mcp = server.NewMCPServer(cfg.Name, cfg.Version,
		server.WithTitle(cfg.Title),
		server.WithInstructions(cfg.Instructions),
		server.WithToolCapabilities(true),
		server.WithHooks(g.hooks()),
	)
	g.mcp.AddTool(mcp.Tool{Name: anyName, RawInputSchema: json.RawMessage(`{"type":"object"}`)}, g.mcpCallTool)
	if cfg.Forward != nil {
		g.declareCapabilities()
	}
	return g, nil
}

// declareCapabilities declares all capabilities that upstreams can have besides tools.
// Which of them exist is only known after the upstreams have started.
func (g *Gateway) declareCapabilities() {
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
		g.forwardRequest(ctx, "resources/read", call.Resources)
		return []mcp.ResourceContents{}, nil
	})
	g.mcp.AddPrompt(mcp.Prompt{Name: anyName}, func(ctx context.Context, _ mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		g.forwardRequest(ctx, "prompts/get", call.Prompts)
		return &mcp.GetPromptResult{}, nil
	})
}

// extensions returns the extensions to declare; nil for none.
func (g *Gateway) extensions() map[string]any {
	if g.cfg.Extensions == nil {
		return nil
	}
	return g.cfg.Extensions()
}

// hooks returns the hooks that replace mcp-go's answers by those of the upstreams.
func (g *Gateway) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, res *mcp.InitializeResult) {
		res.Capabilities.Extensions = g.extensions()
		g.recordLegacyClient(ctx)
	})
	h.AddAfterDiscover(func(_ context.Context, _ any, _ *mcp.DiscoverRequest, res *mcp.DiscoverResult) {
		res.Capabilities.Extensions = g.extensions()
	})
	h.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		req.Params.Name = anyName
		req.Params.Task = nil // the upstream decides whether the call may be a task
	})
	h.AddBeforeReadResource(func(_ context.Context, _ any, req *mcp.ReadResourceRequest) { req.Params.URI = anyURI })
	h.AddBeforeGetPrompt(func(_ context.Context, _ any, req *mcp.GetPromptRequest) { req.Params.Name = anyName })
	h.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, res *mcp.ListToolsResult) {
		g.answerList(ctx, call.Tools)
		res.Tools = []mcp.Tool{}
	})
	h.AddAfterListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest, res *mcp.ListResourcesResult) {
		g.answerList(ctx, call.Resources)
		res.Resources = []mcp.Resource{}
	})
	h.AddAfterListResourceTemplates(func(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, res *mcp.ListResourceTemplatesResult) {
		g.answerList(ctx, call.Templates)
		res.ResourceTemplates = []mcp.ResourceTemplate{}
	})
	h.AddAfterListPrompts(func(ctx context.Context, _ any, _ *mcp.ListPromptsRequest, res *mcp.ListPromptsResult) {
		g.answerList(ctx, call.Prompts)
		res.Prompts = []mcp.Prompt{}
	})
	h.AddAfterSubscribe(func(ctx context.Context, _ any, req *mcp.SubscribeRequest, _ *mcp.EmptyResult) {
		g.subscribe(ctx, req.Params.URI)
	})
	h.AddAfterUnsubscribe(func(ctx context.Context, _ any, req *mcp.UnsubscribeRequest, _ *mcp.EmptyResult) {
		g.unsubscribeClient(ctx, req.Params.URI)
	})
	h.AddBeforeSubscriptionsListen(func(ctx context.Context, _ any, req *mcp.SubscriptionsListenRequest) {
		g.serveSubscriptionStream(ctx, req.Params.Notifications.ResourceSubscriptions)
	})
	h.AddAfterSetLevel(func(ctx context.Context, _ any, req *mcp.SetLevelRequest, _ *mcp.EmptyResult) {
		g.setLevel(ctx, string(req.Params.Level))
	})
	return h
}

// ServeStdio serves one client until in or ctx ends; see wire.ServeStdio for the error.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, logf func(string, ...any)) error {
	defer g.forgetLegacyClient(stdioID)
	return g.serve(ctx, nil, stdioID, in, out, logf)
}

// serve serves one client on a pair of streams until in or ctx ends. as is the caller for
// whom an agent calls; nil: the client calls for itself.
func (g *Gateway) serve(ctx context.Context, as *delegation, session string, in io.Reader, out io.Writer, logf func(string, ...any)) error {
	ctx = context.WithValue(ctx, delegationKey{}, as)
	return wire.ServeStdio(ctx, g.mcp, in, out, wire.ServeOptions{
		Logf: logf, Session: session,
		Call: func(ctx context.Context) bool { g.callTool(ctx, requestExchange(ctx)); return true },
	})
}

// answerList answers a list request of a kind from the client's catalog.
func (g *Gateway) answerList(ctx context.Context, kind call.ListKind) {
	x := requestExchange(ctx)
	if kind == call.Tools {
		g.beforeUserRequest(ctx, x)
	}
	x.answer(g.catalogOf(x).List(ctx, kind, server.IsModernRequest(ctx)))
}

// catalogOf returns the catalog that the client of x sees: that of its profile or
// delegation, or the whole one.
func (g *Gateway) catalogOf(x exchange) Catalog {
	if h, ok := x.(*httpExchange); ok && h.catalog != nil {
		return h.catalog
	}
	if s, ok := x.(stdioExchange); ok && s.delegation != nil && s.delegation.catalog != nil {
		return s.delegation.catalog
	}
	return g.catalog
}
