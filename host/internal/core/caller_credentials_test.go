package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
)

func TestCredentialsOfCallersNeedAClient(t *testing.T) {
	for want, spec := range map[string]dialect.Server{
		"server notes: credentials: caller needs auth.client_id": {Credentials: dialect.CallerCredentials},
		"server notes: token_exchange needs auth.client_id":      {TokenExchange: dialect.TokenExchange{On: true}},
	} {
		spec.Name, spec.URL = "notes", "https://notes.example.com/mcp"
		cfg := config.Config{State: t.TempDir(), Remote: []dialect.Server{spec}}
		a, err := core.Open(cfg)
		require.NoError(t, err, "without auth there is one user")
		a.Close()
		cfg.Auth = &accesstoken.Config{Issuer: "https://login.example.com", URL: "https://tools.example.com"}
		_, err = core.Open(cfg)
		require.ErrorContains(t, err, want)
		cfg.Auth.ClientID = "host"
		a, err = core.Open(cfg)
		require.NoError(t, err)
		a.Close()
	}
}
