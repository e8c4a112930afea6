package config

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// SignIn returns the OAuth configuration of a server. ok is false for servers without
// a URL, with their own credentials, or with oauth: false.
func (s Server) SignIn(state, version string) (c oauth.Config, ok bool) {
	return SignIn(s.Spec, state, version)
}

// SignIn does the same as Server.SignIn for a server as written in a file.
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
