package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
)

// A wrong auth.issuer is told on standard error, once, because users see only that they cannot
// sign in.
func TestServeTellsAWrongIssuer(t *testing.T) {
	var stderr strings.Builder
	p := &program{err: &stderr}
	var cfg config.Config
	cfg.Auth = &accesstoken.Config{Issuer: "http://127.0.0.1:1", URL: "https://tools.example.com"}
	auth, err := p.userSignIn(&core.App{Config: cfg})
	require.NoError(t, err)
	for range 3 {
		_, err := auth.Verify(t.Context(), "eyJhbGciOiJFUzI1NiJ9.e30.AAAA")
		require.Error(t, err)
	}
	require.Equal(t, 1, strings.Count(stderr.String(), "mcp-host: users cannot sign in: auth.issuer: the issuer http://127.0.0.1:1 has no metadata"), stderr.String())
}
