package core

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// configured is what a server's part of the configuration says of how it is
// run.
func configured(sc config.Server, t timeout.Config) upstream.Config {
	c := sc.Config
	c.Scope = upstream.Scope(sc.Spec.Scope)
	// One whose calls may take long may be silent for long: not every server
	// answers a ping while it works.
	if quiet := longest(sc.Name, t) / 2; quiet > 15*time.Second && !sc.Bundled {
		c.QuietTime = quiet
	}
	return c
}

// unbounded is how long a server may be silent whose calls may take for ever.
const unbounded = 2 * time.Hour

// longest is the longest time that a call of some tool of a server's may take.
func longest(server string, t timeout.Config) time.Duration {
	most, ok := t.Servers[server]
	if !ok {
		most = t.Default
		for _, tool := range t.Tools {
			if tool < 0 || most >= 0 && tool > most {
				most = tool
			}
		}
	}
	if most < 0 {
		return unbounded
	}
	return most
}

// switchedOff are the servers that are listed, and never started.
func switchedOff(cfg config.Config) []upstream.Config {
	var servers []upstream.Config
	for _, spec := range cfg.Off {
		servers = append(servers, upstream.Config{Name: spec.Name, Command: spec.Command, URL: spec.URL, Disabled: true})
	}
	return servers
}

// Begin starts the servers that are not to wait until they are needed, and
// what is to be done from time to time.
func (a *App) Begin() {
	a.begin(a.present.Load(), func(string) bool { return true })
	a.work.Go(a.tend)
}

// begin starts those of some servers that are not to wait.
func (a *App) begin(p *present, some func(name string) bool) {
	var eager []string
	for _, one := range p.places {
		if lazy := one.cfg.Spec.Lazy; lazy != nil && !*lazy && some(one.cfg.Name) {
			eager = append(eager, one.cfg.Name)
		}
	}
	a.Catalog.Ask(eager...)
}

// remotes are the servers of a configuration that are reached at an address.
func remotes(cfg config.Config, version string) []config.Server {
	var servers []config.Server
	for _, spec := range cfg.Remote {
		servers = append(servers, config.Server{Spec: spec, Config: upstream.Config{
			Name: spec.Name, URL: spec.URL, Transport: upstream.Transport(spec.Transport),
			Headers: spec.Headers, Token: spec.APIKey, Secrets: spec.Contents, AllowPrivate: spec.AllowPrivate,
			Era: upstream.Era(spec.Era), Version: version, StartTimeout: spec.StartTimeout,
			HeadersHelper: headersHelper(cfg, spec),
		}})
	}
	return servers
}

// headersHelper returns the program that prints headers for a server. It finds the
// server's name and address in the variables that Claude Code sets, too.
func headersHelper(cfg config.Config, spec dialect.Server) upstream.OneShot {
	if len(spec.HeadersHelper) == 0 {
		return upstream.OneShot{}
	}
	env := os.Environ()
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		env = append(env, name+"="+spec.Env[name].Reveal())
	}
	return upstream.OneShot{
		Command: spec.HeadersHelper, Dir: spec.Dir, MaxOutput: 1 << 20, Trusted: cfg.HelperFiles[spec.Name],
		Env: append(env, "CLAUDE_CODE_MCP_SERVER_NAME="+spec.Name, "CLAUDE_CODE_MCP_SERVER_URL="+spec.URL),
	}
}
