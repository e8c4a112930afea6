package config

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// TokenStorage returns where the tokens of sign-ins are stored.
func (c Config) TokenStorage() oauth.Storage {
	return oauth.Storage{State: c.State, Kind: c.TokenStore, Keyring: c.Keyring}
}

// oauthStorageKind returns the oauth.Storage.Kind for a value of token_store: "" for auto.
func oauthStorageKind(tokenStore string) string {
	if tokenStore == "auto" {
		return ""
	}
	return tokenStore
}

// SignIn returns the OAuth configuration of a server. ok is false for servers without
// a URL, with fixed credentials, or with oauth: false, and without a state directory.
func (s Server) SignIn(storage oauth.Storage, version string) (c oauth.Config, ok bool) {
	return SignIn(s.Spec, storage, version)
}

// SignIn returns the sign-in at a server as written in a file. ok is false if none exists: for
// a server without a URL, with its own credentials, with sign-in off, or without a state
// directory.
func SignIn(spec dialect.Server, storage oauth.Storage, version string) (c oauth.Config, ok bool) {
	if spec.URL == "" || spec.APIKey != "" || len(spec.HeadersHelper) > 0 || spec.OAuth.Off || storage.State == "" {
		return c, false
	}
	for name := range spec.Headers {
		if strings.EqualFold(name, "Authorization") {
			return c, false
		}
	}
	o := spec.OAuth
	return oauth.Config{
		Server: spec.Name, URL: spec.URL, Storage: storage, Account: o.Account, AllowPrivate: spec.AllowPrivate, Version: version,
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientMetadataURL: o.ClientMetadataURL,
		Grant: o.Grant, PrivateKey: o.PrivateKey, KeyAlgorithm: o.KeyAlgorithm, AssertionFile: o.AssertionFile, IdentityProvider: oauth.IdentityProvider(o.IdentityProvider),
		Scopes: o.Scopes, DPoP: o.DPoP, RedirectPort: o.RedirectPort,
		RedirectURI: o.RedirectURI, AuthorizationParameters: o.AuthorizationParameters, AssumePKCE: o.AssumePKCE,
	}, true
}

// SignInOf returns the OAuth configuration of a server for a user of serve, who signs
// in by a link. ok is false if the server does not have credentials: caller, subject is
// "", or SignIn has none.
func (s Server) SignInOf(subject string, storage oauth.Storage, version string) (c oauth.Config, ok bool) {
	if s.Spec.Credentials != dialect.CallerCredentials || subject == "" {
		return c, false
	}
	c, ok = s.SignIn(storage, version)
	c.Subject, c.SignInLink, c.Grant, c.AssertionFile, c.IdentityProvider = subject, true, "", "", oauth.IdentityProvider{}
	return c, ok
}

// signInFault returns what is wrong with the settings of authorization requests, and the field;
// "": nothing.
func signInFault(s dialect.Server) (field, fault string) {
	c := oauth.Config{RedirectPort: s.OAuth.RedirectPort, RedirectURI: s.OAuth.RedirectURI, AuthorizationParameters: s.OAuth.AuthorizationParameters}
	if setting, err := c.ValidateRequest(); err != nil {
		return "oauth." + setting, err.Error()
	}
	return "", ""
}

// callerCredentialsFault returns what is wrong with credentials and token_exchange, and
// the field; "": nothing. Fixed credentials would be sent for every user.
func callerCredentialsFault(s dialect.Server) (field, fault string) {
	field = "credentials"
	if s.TokenExchange.On {
		field = "token_exchange"
	} else if s.Credentials == "" {
		return "", ""
	}
	fixed := s.APIKey != "" || len(s.HeadersHelper) > 0
	for name := range s.Headers {
		fixed = fixed || strings.EqualFold(name, "Authorization")
	}
	switch {
	case s.URL == "":
		return field, "only servers with a url have it"
	case s.TokenExchange.On && s.Credentials != "":
		return field, "it excludes credentials: caller; choose one"
	case fixed:
		return field, "it excludes api_key, auth_token_env, headers_helper and the header Authorization"
	case s.Credentials != "" && s.OAuth.Off:
		return field, "it excludes oauth: false"
	}
	return "", ""
}
