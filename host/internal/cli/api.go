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

// api returns the HTTP API.
func (p *program) api(a *core.App) *httpapi.API {
	kept := a.Store()
	return httpapi.New(httpapi.Config{
		Approvals: a, Models: askable{a}, Tools: offered{a}, Call: a.Handler,
		Sessions: a.Sessions(), Responses: a.Responses(), Keys: kept.Keys, Blobs: kept.Blobs, Version: buildinfo.Version(), Logf: p.logf,
	})
}

// askable are a host's models, as the configuration is when one is asked for.
type askable struct{ app *core.App }

func (m askable) Get(ctx context.Context, name string) (provider.Model, error) {
	return m.app.Models().Get(ctx, name)
}

func (m askable) List(ctx context.Context) []provider.Info { return m.app.Models().List(ctx) }

// offered is a host's tools as the API offers them.
type offered struct{ app *core.App }

func (o offered) List(ctx context.Context) []*call.Tool { return o.app.List(ctx) }

func (o offered) Get(ctx context.Context, name string) (*call.Tool, bool) {
	return o.app.Get(ctx, name)
}

func (o offered) Turn(c call.Caller, only []string) (agent.Tools, func() error) {
	tools := o.app.Toolset(c, nil, core.Ceiling{Only: only})
	return tools, tools.End
}
