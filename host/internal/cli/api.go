package cli

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/httpapi"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

// newAPI returns the HTTP API of a host.
func (p *program) newAPI(a *core.App) *httpapi.API {
	kept := a.Store()
	return httpapi.New(httpapi.Config{
		Approvals: a, Models: hostModels{a}, Tools: hostTools{a}, Call: a.Handler,
		Sessions: a.Sessions(), Responses: a.Responses(), Keys: kept.Keys, Blobs: kept.Blobs, Version: buildinfo.Version(), Logf: p.logf,
	})
}

// hostModels are a host's models, according to its current configuration.
type hostModels struct{ app *core.App }

// Get returns the model with a name, "" for the default one, or an error if no model has it.
func (m hostModels) Get(ctx context.Context, name string) (provider.Model, error) {
	return m.app.Models().Get(ctx, name)
}

// List returns the configured and found models.
func (m hostModels) List(ctx context.Context) []provider.Info { return m.app.Models().List(ctx) }

// hostTools are a host's tools for the API.
type hostTools struct{ app *core.App }

// List returns the tools of all servers.
func (o hostTools) List(ctx context.Context) []*call.Tool { return o.app.List(ctx) }

// Get returns the tool with a served name, and false if no server has it; see core.App.Get.
func (o hostTools) Get(ctx context.Context, name string) (*call.Tool, bool) {
	return o.app.Get(ctx, name)
}

// Turn returns the tools for one turn of a caller, all (nil) or only those matching the
// patterns of only, and a function that ends the turn. That function returns an error if
// the policy requires a call that was not made.
func (o hostTools) Turn(c call.Caller, only []string) (agent.Tools, func() error) {
	tools := o.app.Toolset(c, nil, core.Ceiling{Only: only})
	return tools, tools.End
}
