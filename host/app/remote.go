package app

import (
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/upstream"
)

// remotes are the servers of a configuration that are reached at an address.
func remotes(cfg config.Config, version string) []config.Server {
	var servers []config.Server
	for _, spec := range cfg.Remote {
		servers = append(servers, config.Server{Spec: spec, Config: upstream.Config{
			Name: spec.Name, URL: spec.URL, Transport: upstream.Transport(spec.Transport),
			Headers: spec.Headers, Token: spec.APIKey, AllowPrivate: spec.AllowPrivate,
			Era: upstream.Era(spec.Era), Version: version, StartTimeout: spec.StartTimeout,
		}})
	}
	return servers
}
