package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkProof verifies a proof as a server does and returns its claims.
func checkProof(t *testing.T, text string) map[string]any {
	t.Helper()
	parts := strings.Split(text, ".")
	require.Len(t, parts, 3)
	var header struct {
		Typ, Alg string
		JWK      struct{ Kty, Crv, X, Y, D string }
	}
	var claims map[string]any
	for i, into := range []any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, into))
	}
	require.Equal(t, []string{"dpop+jwt", "ES256", "EC", "P-256", ""}, []string{header.Typ, header.Alg, header.JWK.Kty, header.JWK.Crv, header.JWK.D})
	point := []byte{4}
	for _, text := range []string{header.JWK.X, header.JWK.Y} {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		require.NoError(t, err)
		require.Len(t, raw, 32)
		point = append(point, raw...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	require.NoError(t, err)
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	require.NoError(t, err)
	require.Len(t, signature, 64)
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	require.True(t, ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])))
	return claims
}

func TestTokensBoundToAKey(t *testing.T) {
	p := newProvider(t)
	var proofs []string
	asked := false
	p.token = func(w http.ResponseWriter, req *http.Request) bool {
		proofs = append(proofs, req.Header.Get("DPoP"))
		if !asked {
			asked = true
			w.Header().Set("DPoP-Nonce", "of-the-provider")
			w.WriteHeader(http.StatusBadRequest)
			writeJSON(w, map[string]any{"error": "use_dpop_nonce"})
			return true
		}
		writeJSON(w, map[string]any{"access_token": "bound", "token_type": "DPoP", "refresh_token": "r", "expires_in": 3600})
		return true
	}
	p.resource = func(doc map[string]any) { doc["dpop_bound_access_tokens_required"] = true }
	c := p.signedIn()
	require.Len(t, proofs, 2)
	first, second := checkProof(t, proofs[0]), checkProof(t, proofs[1])
	require.NotContains(t, first, "nonce")
	require.Equal(t, "of-the-provider", second["nonce"])
	require.NotEqual(t, first["jti"], second["jti"])
	require.Equal(t, []any{"POST", p.auth.URL + "/token"}, []any{second["htm"], second["htu"]})

	s := NewSource(c)
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "bound", token)
	req, err := http.NewRequest(http.MethodPost, c.URL+"?a=b#c", nil)
	require.NoError(t, err)
	require.NoError(t, s.Sign(req, token))
	require.Equal(t, "DPoP bound", req.Header.Get("Authorization"))
	claims := checkProof(t, req.Header.Get("DPoP"))
	sum := sha256.Sum256([]byte("bound"))
	require.Equal(t, base64.RawURLEncoding.EncodeToString(sum[:]), claims["ath"])
	require.Equal(t, c.URL, claims["htu"], "without query and fragment")

	// The nonce of the server is not that of the provider. A refusal for its lack
	// refreshes nothing.
	refusal := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{
		"Dpop-Nonce": {"of-the-server"}, "Www-Authenticate": {`DPoP error="use_dpop_nonce"`},
	}}
	require.False(t, s.Received(refusal), "of a request without a proof")
	refusal.Request = req
	for range 2 { // also where another request has brought the nonce
		require.True(t, s.Received(refusal))
	}
	again, err := s.Refused(t.Context(), token, http.StatusUnauthorized, refusal.Header["Www-Authenticate"])
	require.NoError(t, err)
	require.False(t, again)
	require.Len(t, proofs, 2)
	require.NoError(t, s.Sign(req, token))
	require.Equal(t, "of-the-server", checkProof(t, req.Header.Get("DPoP"))["nonce"])
	require.False(t, s.Received(&http.Response{StatusCode: http.StatusOK, Header: http.Header{"Dpop-Nonce": {"bad nonce"}}}))
}

// A provider that supports proofs is not reason enough: its server may take Bearer
// tokens only.
func TestTokensAreNotBoundUnasked(t *testing.T) {
	p := newProvider(t)
	p.metadata = func(doc map[string]any) { doc["dpop_signing_alg_values_supported"] = []string{"ES256"} }
	p.token = func(w http.ResponseWriter, req *http.Request) bool {
		require.Empty(t, req.Header.Get("DPoP"))
		return false
	}
	s := NewSource(p.signedIn())
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	req, err := http.NewRequest(http.MethodPost, p.mcp.URL, nil)
	require.NoError(t, err)
	require.NoError(t, s.Sign(req, token))
	require.Equal(t, "Bearer "+token, req.Header.Get("Authorization"))
	require.Empty(t, req.Header.Get("DPoP"))
}

func TestProvidersWithOtherAlgorithms(t *testing.T) {
	p := newProvider(t)
	p.metadata = func(doc map[string]any) { doc["dpop_signing_alg_values_supported"] = []string{"RS256"} }
	c := p.config()
	c.DPoP = true
	_, err := p.login(c)
	require.ErrorContains(t, err, "does not accept proofs of possession with ES256")
}

// If proofs of possession are optional and the algorithms do not match, the tokens are not bound.
func TestOptionalProofsOfPossession(t *testing.T) {
	for name, c := range map[string]struct {
		resource map[string]any
		metadata []string
		bound    bool
	}{
		"optional":                    {map[string]any{"dpop_signing_alg_values_supported": []string{"ES256"}}, []string{"ES256"}, true},
		"optional, not said":          {map[string]any{"dpop_signing_alg_values_supported": []string{"ES256"}}, nil, true},
		"not supported by the issuer": {map[string]any{"dpop_signing_alg_values_supported": []string{"ES256"}}, []string{"RS256"}, false},
		"not supported by the server": {map[string]any{"dpop_signing_alg_values_supported": []string{"RS256"}}, []string{"ES256"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.resource = func(doc map[string]any) { maps.Copy(doc, c.resource) }
			p.metadata = func(doc map[string]any) { doc["dpop_signing_alg_values_supported"] = c.metadata }
			cfg := p.config()
			_, err := p.login(cfg)
			require.NoError(t, err)
			r, err := cfg.loadRecord(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.bound, r.Tokens.Key != "")
		})
	}
}
