package config

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// SignIn returns what a sign-in to the server needs. ok is false for servers
// that are not reached at an address, that have credentials of their own, or
// with oauth: false.
func (s Server) SignIn(state, version string) (c oauth.Config, ok bool) {
	return SignIn(s.Spec, state, version)
}

// SignIn is Server.SignIn for what a file says of a server.
func SignIn(spec dialect.Server, state, version string) (c oauth.Config, ok bool) {
	if spec.URL == "" || spec.APIKey != "" || len(spec.HeadersHelper) > 0 || spec.OAuth.Off || state == "" {
		return c, false
	}
	for name := range spec.Headers {
		if strings.EqualFold(name, "Authorization") {
			return c, false
		}
	}
	o := spec.OAuth
	return oauth.Config{
		Server: spec.Name, URL: spec.URL, State: state, Account: o.Account, AllowPrivate: spec.AllowPrivate, Version: version,
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientMetadataURL: o.ClientMetadataURL,
		Grant: o.Grant, PrivateKey: o.PrivateKey, KeyAlgorithm: o.KeyAlgorithm, AssertionFile: o.AssertionFile,
		Scopes: o.Scopes, DPoP: o.DPoP, RedirectPort: o.RedirectPort,
	}, true
}
