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

// upstreamConfig returns the upstream configuration of a server. QuietTime is half of its
// longest timeout if that is more than 15 s and the server is not bundled.
func upstreamConfig(sc config.Server, t timeout.Config) upstream.Config {
	c := sc.Config
	c.Scope = upstream.Scope(sc.Spec.Scope)
	// A server with long calls may be silent for long: not every server answers a ping
	// while it works.
	if quiet := longestTimeout(sc.Name, t) / 2; quiet > 15*time.Second && !sc.Bundled {
		c.QuietTime = quiet
	}
	return c
}

// unboundedTimeout replaces the longest timeout of a server whose calls have none.
const unboundedTimeout = 2 * time.Hour

// longestTimeout returns the longest timeout of any tool of a server, or unbounded if a
// tool has none.
func longestTimeout(server string, t timeout.Config) time.Duration {
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
		return unboundedTimeout
	}
	return most
}

// disabledServers returns the upstream configurations of the disabled servers, which are
// listed but never started.
func disabledServers(cfg config.Config) []upstream.Config {
	var servers []upstream.Config
	for _, spec := range cfg.Off {
		servers = append(servers, upstream.Config{Name: spec.Name, Command: spec.Command, URL: spec.URL, Disabled: true})
	}
	return servers
}

// StartBackground starts the servers with lazy: false, and the periodic maintenance. It returns at
// once.
func (a *App) StartBackground() {
	a.startEarly(a.snapshot.Load(), func(string) bool { return true })
	a.work.Go(a.runMaintenance)
	a.work.Go(a.probeSandbox)
}

// startEarly starts the servers of s with lazy: false for which selected returns true. It
// returns at once.
func (a *App) startEarly(s *snapshot, selected func(name string) bool) {
	var eager []string
	for _, one := range s.servers {
		if lazy := one.cfg.Spec.Lazy; lazy != nil && !*lazy && selected(one.cfg.Name) {
			eager = append(eager, one.cfg.Name)
		}
	}
	a.Catalog.StartListing(eager...)
}

// remoteServers returns the servers of a configuration that are reached over HTTP.
func remoteServers(cfg config.Config, version string) []config.Server {
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

// headersHelper returns the program that prints HTTP headers for a server. It gets the
// server's name and address in the variables that Claude Code sets as well.
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
