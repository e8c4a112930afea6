package core

import (
	"context"
	"net/http"
	"reflect"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/auto"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/directcall"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/scripted"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Models returns the finder for the models of the current configuration. It connects to
// none of them.
func (a *App) Models() *lookup.Finder { return a.snapshot.Load().models }

// newModels returns the finder for the models of a configuration. It reuses the one of
// before if nothing has changed.
func newModels(cfg config.Config, before *snapshot) *lookup.Finder {
	if before != nil && reflect.DeepEqual(before.cfg.Models, cfg.Models) {
		return before.models
	}
	local := func(ctx context.Context) (lookup.Provider, bool) {
		return auto.FindLocal(ctx, auto.MaxSearchTime, auto.Ports()...)
	}
	return lookup.New(cfg.Models, lookup.Backend{Open: openModel, List: auto.ListModels, FindLocal: local})
}

// openModel returns a client for the model m of the provider p. It sends no request. It
// returns an error for an unknown kind, or an unreadable file of a scripted model.
func openModel(p lookup.Provider, m lookup.Model) (provider.Model, error) {
	info := p.Info(m)
	header := http.Header{}
	for name, value := range p.Headers {
		header.Set(name, value.Reveal())
	}
	at := endpoint.Config{Name: p.Name, BaseURL: p.BaseURL, Header: header, Key: p.Key.Reveal(), KeyEnv: p.KeyEnv, MaxSilence: p.Timeout}
	switch p.Kind {
	case lookup.Scripted:
		return scripted.Open(p.File, info)
	case lookup.Command:
		return directcall.New(p.Name), nil
	case lookup.OpenAI:
		return openai.New(openai.Config{Config: at, Model: m.Name, Info: info, Strict: p.Strict, Extra: p.Extra}), nil
	case lookup.Anthropic:
		return anthropic.New(anthropic.Config{Config: at, Model: m.Name, Info: info, Strict: p.Strict, Extra: p.Extra}), nil
	case lookup.Gemini:
		return gemini.New(gemini.Config{
			Config: at, Model: m.Name, Info: info, Extra: p.Extra,
			Project: p.Project, Region: p.Region, Token: p.TokenCommand,
		}), nil
	}
	return nil, toolerr.New(toolerr.NoModel, "provider %s: unknown kind %q", p.Name, p.Kind)
}
