package core

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// agentServer is the bundled server whose tools need a model.
const agentServer = "dispatch_agent"

// probeTimeout limits how long a list waits for the probe of this machine's ports. If the
// probe takes longer and finds a model, the tools follow with a change notification.
const probeTimeout = 50 * time.Millisecond

// needsModel reports whether a server's tools work only with a model.
func needsModel(sc config.Server) bool { return sc.Bundled && sc.Name == agentServer }

// modelSource is the source of a server whose tools are listed only while a model can
// be found. The server is not started for a list before.
type modelSource struct {
	*upstream.Server
	app *App
}

// List returns the server's list, or an empty one if no model can be found.
func (s modelSource) List(ctx context.Context, kind call.ListKind) ([]json.RawMessage, error) {
	if !s.app.hasModel(s.Name()) {
		return nil, nil
	}
	return s.Server.List(ctx, kind)
}

// hasModel reports whether a model is configured or can be found. It waits at most
// probeTimeout for the probe of this machine's ports; if the probe finds a model later, it
// lists the server again.
func (a *App) hasModel(server string) bool {
	models := a.Models()
	if models.IsConfigured() {
		return true
	}
	looked := make(chan bool, 1)
	late := make(chan struct{}) // closed when nobody waits for the answer
	a.work.Go(func() {
		found := models.HasLocal(a.life)
		looked <- found
		select {
		case <-late:
			if found {
				a.Catalog.RefreshNow(a.life, server) //nolint:errcheck // it only fails when the host closes
			}
		default:
		}
	})
	timer := time.NewTimer(probeTimeout)
	defer timer.Stop()
	select {
	case found := <-looked:
		return found
	case <-timer.C:
		close(late)
	}
	select {
	case found := <-looked: // both at once: the probe may not have seen late
		return found
	default:
		return false
	}
}

// WithheldReason returns why a server's tools are not served although the server could
// serve them; "": they are served. It waits for the search for a model on this machine.
func (a *App) WithheldReason(ctx context.Context, s *upstream.Server) string {
	p, ok := a.snapshot.Load().byName[s.Name()]
	if !ok || !needsModel(p.cfg) {
		return ""
	}
	if models := a.Models(); models.IsConfigured() || models.HasLocal(ctx) {
		return ""
	}
	return "its tools are not served: " + lookup.NoModel
}

// WhyUnavailable returns the error of a call of the tool name if the tool is not served
// because no model can be found; nil: there is no such tool, or it is served.
func (a *App) WhyUnavailable(ctx context.Context, name string) error {
	p, ok := a.snapshot.Load().byName[name]
	if !ok || p.off || a.WithheldReason(ctx, p.server) == "" { // the agents' server and tool have the same name
		return nil
	}
	return toolerr.New(toolerr.NoModel, "%s is not served: %s, or do the task with the other tools", name, lookup.NoModel)
}

// relistModelServers lists the servers whose tools need a model again, if the models of
// the two snapshots differ.
func (a *App) relistModelServers(before, now *snapshot) {
	if reflect.DeepEqual(before.cfg.Models, now.cfg.Models) {
		return
	}
	for _, p := range now.servers {
		if !p.off && needsModel(p.cfg) {
			a.Catalog.Refresh(p.server.Name())
		}
	}
}
