package core

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/confine"
	"github.com/toolroom-mcp/toolroom/host/internal/resident"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// setSandbox sets c.Start so that the server's program runs in a sandbox, if the server's
// settings ask for one. Bundled tools confine themselves.
func (a *App) setSandbox(c *upstream.Config, sc config.Server) {
	if sc.Spec.Sandbox.On && !sc.Bundled {
		c.Confine = a.confinedStarter(c.Name, sc, false, func(*confine.Process) {})
	}
}

// confinedStarter returns a function that starts the server's program in its sandbox and
// then calls started. With watch, the sandbox collects refusals for a proposal instead of
// reporting them.
func (a *App) confinedStarter(name string, sc config.Server, watch bool, started func(*confine.Process)) func(upstream.ConfinedProgram) (upstream.ConfinedProcess, error) {
	return func(p upstream.ConfinedProgram) (upstream.ConfinedProcess, error) {
		c := confinedSettings(name, sc, a.snapshot.Load().cfg)
		program := confine.Program{Server: name, Command: p.Command, Dir: p.Dir, Env: p.Env, Configured: c.Configured, Stdio: p.Stdio, Grace: p.Grace, Watch: watch}
		if !watch {
			program.OnRefused = a.newRefusalLogger(name)
		}
		process, err := a.confiner.Start(a.life, program, c.Settings)
		if err != nil {
			return nil, err
		}
		started(process)
		return process, nil
	}
}

// confinedSettings returns the sandbox settings of a server's program: paths, network and
// level from its configuration and the host's roots.
func confinedSettings(name string, sc config.Server, cfg config.Config) resident.ConfinedSettings {
	c := resident.ConfinedSettings{Server: name, Configured: slices.Sorted(maps.Keys(sc.Spec.Env)), Settings: config.Confinement(sc.Spec.Sandbox)}
	c.Settings.Protect, c.Settings.Hidden = cfg.ProtectedFiles(), cfg.StateDirsOutside()
	return c
}

// newRefusalLogger returns a function for the refusals of a server's sandbox: it writes each
// refusal to the audit log, and notifies the user of the same refusal only once, because a
// server may be restarted often.
func (a *App) newRefusalLogger(server string) func(refused string) {
	return func(refused string) {
		if log := a.currentPipeline().audit; log != nil {
			log.SandboxRefused(server, refused)
		}
		a.notifyOnce("the sandbox of server " + server + " refused " + refused)
	}
}

// WatchedCall is a call of a tool by its name on the server.
type WatchedCall struct {
	Tool      string
	Arguments json.RawMessage
}

// WatchedRun is the result of WatchServer.
type WatchedRun struct {
	Sandbox  string           // the level and the network
	Network  string           // as confine.Settings.Network
	Err      error            // of the start or of a call
	Proposal confine.Proposal // from all its processes
}

// WatchServer runs a server once in its sandbox, or in the default one if it has none,
// lists its tools, makes the calls, and returns what the sandbox refused. It does not
// touch a running process of the server. The error says why the server cannot be
// confined; errors of the run are in WatchedRun.Err.
func (a *App) WatchServer(ctx context.Context, name string, calls []WatchedCall) (WatchedRun, error) {
	p := a.snapshot.Load()
	entry := p.byName[name]
	switch {
	case entry == nil:
		return WatchedRun{}, toolerr.New(toolerr.NotFound, "no server %q; mcp-host servers lists them", name)
	case len(entry.cfg.Command) == 0:
		return WatchedRun{}, toolerr.New(toolerr.InvalidParams, "server %s has no command: only programs can be confined", name)
	case entry.cfg.Bundled:
		return WatchedRun{}, toolerr.New(toolerr.InvalidParams, "server %s is a bundled tool, which confines itself", name)
	}
	var mu sync.Mutex
	var processes []*confine.Process
	cfg := upstreamConfig(entry.cfg, stageConfigs(p.cfg).Timeout)
	cfg.Roots, cfg.Host = a.roots.get, a.id
	cfg.Confine = a.confinedStarter(name, entry.cfg, true, func(process *confine.Process) {
		mu.Lock()
		defer mu.Unlock()
		processes = append(processes, process)
	})
	server, err := upstream.New(cfg, a.spawner)
	if err != nil {
		return WatchedRun{}, err
	}
	var run WatchedRun
	_, run.Err = server.Tools(ctx)
	for _, one := range calls {
		if run.Err == nil {
			_, run.Err = server.Call(ctx, watchedRequest(name, one))
		}
	}
	server.Close()
	mu.Lock()
	defer mu.Unlock()
	for _, process := range processes {
		run.Sandbox, run.Network = process.Sandbox(), process.Network()
		run.Proposal.Add(process.Proposal())
	}
	return run, nil
}

// watchedRequest returns the request of a call in a watched run.
func watchedRequest(server string, c WatchedCall) *call.Request {
	params, err := json.Marshal(map[string]any{"name": c.Tool, "arguments": c.Arguments})
	if err != nil {
		panic(err) // Arguments are JSON
	}
	return &call.Request{Tool: &call.Tool{Name: c.Tool, Original: c.Tool, Server: server}, Params: params, Caller: call.Caller{EntryPoint: "cli"}}
}

// SandboxOf returns the configured sandbox of a server; the zero value if it has none.
func (a *App) SandboxOf(name string) dialect.Sandbox {
	if entry := a.snapshot.Load().byName[name]; entry != nil {
		return entry.cfg.Spec.Sandbox
	}
	return dialect.Sandbox{}
}

// probeSandbox tests which of the configured sandboxes this machine enforces, so that the
// first start of a server does not wait for it. It does nothing if no server has a
// sandbox.
func (a *App) probeSandbox() {
	for _, entry := range a.snapshot.Load().servers {
		if sandbox := entry.cfg.Spec.Sandbox; sandbox.On {
			a.confiner.TestLevelEarly(a.life, config.Confinement(sandbox))
		}
	}
}
