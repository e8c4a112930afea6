package core_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
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

// A server that waits for the sign-in of a user has not failed.
func TestServerThatWaitsForUsersIsNotReported(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	own := dialect.Server{Name: "own", URL: refuses.URL, Credentials: dialect.CallerCredentials}
	common := dialect.Server{Name: "common", URL: refuses.URL}
	a, err := core.Open(config.Config{State: t.TempDir(), Remote: []dialect.Server{own, common},
		Auth: &accesstoken.Config{Issuer: "https://login.example.com", URL: "https://tools.example.com", ClientID: "host"}})
	require.NoError(t, err)
	notices := make(chan string, 100)
	a.OnNotice(func(text string) { notices <- text })
	a.ReportFailures()
	a.Catalog.Snapshot(t.Context())
	a.Close()
	close(notices)
	var failures []string
	for notice := range notices {
		if strings.HasPrefix(notice, "server ") {
			failures = append(failures, notice)
		}
	}
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], "server common: ")
}
