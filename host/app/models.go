package app

import (
	"reflect"

	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/provider"
	"github.com/toolroom-mcp/toolroom/host/provider/command"
	"github.com/toolroom-mcp/toolroom/host/provider/registry"
	"github.com/toolroom-mcp/toolroom/host/provider/scripted"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Models is which models there are, as the configuration is now. None is opened or
// asked before it is used.
func (a *App) Models() *registry.Registry { return a.present.Load().models }

// nextModels makes the registry, or takes that of before if nothing has changed.
func nextModels(cfg config.Config, before *present) *registry.Registry {
	if before != nil && reflect.DeepEqual(before.cfg.Models, cfg.Models) {
		return before.models
	}
	return registry.New(cfg.Models, registry.Ways{Open: openModel})
}

// openModel makes a provider's model.
func openModel(p registry.Provider, m registry.Model) (provider.Model, error) {
	info := p.Info(m)
	switch p.Kind {
	case registry.Scripted:
		return scripted.Open(p.File, info)
	case registry.Command:
		return command.New(p.Name), nil
	}
	return nil, toolerr.New(toolerr.NoModel, "provider %s: there is no kind %q", p.Name, p.Kind)
}
