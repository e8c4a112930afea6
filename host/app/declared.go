package app

import (
	"context"
	"reflect"
	"time"

	"github.com/toolroom-mcp/toolroom/host/call"
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/declared"
)

// declare makes the declared tools. One that is declared as before is that of
// before.
func (a *App) declare(p, before *present) error {
	p.declared = map[string]*declared.Tool{}
	for _, spec := range p.cfg.Declared {
		var t *declared.Tool
		if before != nil {
			if old := before.declared[declared.Served(spec)]; old != nil && reflect.DeepEqual(old.Spec.Placeless(), spec.Placeless()) {
				t = old
			}
		}
		if t == nil {
			var err error
			if t, err = declared.New(spec, a.deps()); err != nil {
				return err
			}
		}
		p.declared[t.Name()] = t
		p.tools = append(p.tools, t)
	}
	return nil
}

// deps are what executors need of the host.
func (a *App) deps() declared.Deps { return declared.Deps{} }

// handleDeclared carries out a call of a declared tool. It ends with the host.
func (a *App) handleDeclared(ctx context.Context, t *declared.Tool, req *call.Request) (*call.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.life, cancel)() //nolint:errcheck // whether it ran does not matter
	return t.Handle(ctx, req)
}

// sayDeclared adds how long calls of declared tools may take.
func sayDeclared(cfg config.Config, timeouts map[string]time.Duration) {
	for _, spec := range cfg.Declared {
		if spec.Timeout > 0 {
			timeouts[declared.Served(spec)] = spec.Timeout
		}
	}
}
