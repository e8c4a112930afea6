package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// loadServer reads a configuration with one server.
func loadServer(t *testing.T, server string) (config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(file, []byte("servers: {notes: {"+server+"}}\n"), 0o600))
	return config.Load(config.Flags{Config: file, State: t.TempDir()}, dir, "1", env(), []string{"KEY=k", "PATH=" + os.Getenv("PATH")})
}

// Fixed credentials of the host would be sent for every user.
func TestCredentialsOfCallersExcludeThoseOfTheHost(t *testing.T) {
	const url = "url: 'https://notes.example.com/mcp', "
	for server, want := range map[string]string{
		"command: sh, credentials: caller":                                            "credentials: only servers with a url",
		"command: sh, token_exchange: true":                                           "token_exchange: only servers with a url",
		url + "credentials: caller, token_exchange: true":                             "token_exchange: it excludes credentials: caller",
		url + "credentials: caller, api_key: k":                                       "credentials: it excludes api_key",
		url + "credentials: caller, auth_token_env: KEY":                              "credentials: it excludes api_key",
		url + "credentials: caller, headers: {authorization: x}":                      "credentials: it excludes api_key",
		url + "token_exchange: {audience: a}, headers_helper: [sh]":                   "token_exchange: it excludes api_key",
		url + "token_exchange: true, api_key: k":                                      "token_exchange: it excludes api_key",
		url + "credentials: caller, oauth: false":                                     "credentials: it excludes oauth: false",
		url + "credentials: everyone":                                                 "credentials",
		url + "token_exchange: {audience: a, secret: b}":                              "token_exchange.secret: unknown",
		url + "credentials: caller, headers: {X-Tenant: a}, oauth: {client_id: host}": "",
		url + "token_exchange: {audience: a, scopes: [b]}":                            "",
		url + "credentials: host, api_key: k":                                         "",
	} {
		_, err := loadServer(t, server)
		if want == "" {
			require.NoError(t, err, server)
			continue
		}
		require.ErrorContains(t, err, want, server)
	}
}

// Users sign in themselves, even if the host signs in as itself.
func TestSignInOf(t *testing.T) {
	c, err := loadServer(t, "url: 'https://notes.example.com/mcp', credentials: caller, oauth: {grant: client_credentials, client_id: host, client_secret: s, account: work}")
	require.NoError(t, err)
	server := config.Server{Spec: c.Remote[0]}
	own, ok := server.SignIn(oauth.Storage{State: "state"}, "1")
	require.True(t, ok)
	require.Equal(t, "client_credentials", own.Grant)
	of, ok := server.SignInOf("issuer\nalice", oauth.Storage{State: "state"}, "1")
	require.True(t, ok)
	require.Empty(t, of.Grant)
	require.Equal(t, "host", of.ClientID)
	require.NotEqual(t, own.File(), of.File())
	_, ok = server.SignInOf("", oauth.Storage{State: "state"}, "1")
	require.False(t, ok, "nobody is not the host")
}

// Settings of authorization requests are checked when the configuration is read.
func TestSettingsOfAuthorizationRequests(t *testing.T) {
	const url = "url: 'https://notes.example.com/mcp', "
	for server, want := range map[string]string{
		url + "oauth: {authorization_parameters: {state: x}}":                       "oauth.authorization_parameters: state cannot be set",
		url + "oauth: {authorization_parameters: [a]}":                              "oauth.authorization_parameters: want a map of strings",
		url + "oauth: {redirect_uri: 'https://notes.example.com/'}":                 "oauth.redirect_uri",
		url + "oauth: {redirect_uri: 'http://localhost:1/', redirect_port: 2}":      "another port than redirect_port",
		url + "oauth: {redirect_uri: 'http://localhost/callback'}":                  "",
		url + "oauth: {authorization_parameters: {access_type: offline, n: 1}}":     "",
		url + "oauth: {assume_pkce: true, authorization_parameters: {a: '${KEY}'}}": "",
	} {
		c, err := loadServer(t, server)
		if want != "" {
			require.ErrorContains(t, err, want, server)
			continue
		}
		require.NoError(t, err, server)
		got, ok := config.SignIn(c.Remote[0], oauth.Storage{State: "state"}, "1")
		require.True(t, ok)
		require.Equal(t, c.Remote[0].OAuth.RedirectURI, got.RedirectURI)
		require.Equal(t, c.Remote[0].OAuth.AssumePKCE, got.AssumePKCE)
		if got.AssumePKCE {
			require.Equal(t, map[string]string{"a": "k"}, got.AuthorizationParameters)
		}
	}
}
