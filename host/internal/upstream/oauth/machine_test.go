package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

func pemOf(t *testing.T, key any) secret.Text {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return secret.Text(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// Tokens are obtained without a user, stored, and obtained again when they expire.
func TestClientCredentials(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	c.Grant, c.ClientID, c.ClientSecret = ClientCredentials, "worker", "worker-secret"
	s := NewSource(c)
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Empty(t, token)
	again, err := s.Refused(t.Context(), "", http.StatusUnauthorized, []string{`Bearer scope="read"`})
	require.NoError(t, err)
	require.True(t, again)
	token, err = s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	require.Equal(t, ClientCredentials, p.forms[0].Get("grant_type"))
	require.Equal(t, c.URL, p.forms[0].Get("resource"))

	other := NewSource(c)
	token, err = other.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token, "another process uses the stored token")

	require.NoError(t, c.updateRecord(t.Context(), func(r *record) (bool, error) {
		r.Tokens.Expires, r.Tokens.Refresh = time.Now().Add(-time.Second), ""
		return true, nil
	}))
	token, err = NewSource(c).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token)
	account, err := Login(t.Context(), c, Prompt{})
	require.NoError(t, err)
	require.True(t, account.SignedIn)
}

func TestJWTBearer(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	c.Grant, c.ClientID, c.AssertionFile = JWTBearer, "worker", filepath.Join(t.TempDir(), "jwt")
	s := NewSource(c)
	refused := func() error {
		_, err := s.Refused(t.Context(), "", http.StatusUnauthorized, []string{"Bearer"})
		return err
	}
	require.ErrorContains(t, refused(), "oauth.assertion_file: ")
	require.NoError(t, os.WriteFile(c.AssertionFile, []byte("no jwt\n"), 0o600))
	require.ErrorContains(t, refused(), "does not contain a JWT")
	require.NoError(t, os.WriteFile(c.AssertionFile, []byte("a.b.c\n"), 0o600))
	require.NoError(t, refused())
	require.Equal(t, "a.b.c", p.forms[0].Get("assertion"))
	require.Equal(t, "urn:ietf:params:oauth:grant-type:jwt-bearer", p.forms[0].Get("grant_type"))
}

func TestSettingsOfMachines(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"is not supported":              func(c *Config) { c.Grant = "password" },
		"needs oauth.client_id, and":    func(c *Config) { c.Grant = ClientCredentials },
		"jwt_bearer needs oauth.assert": func(c *Config) { c.Grant, c.ClientID = JWTBearer, "x" },
		"needs oauth.grant jwt_bearer":  func(c *Config) { c.AssertionFile = "x" },
		"jwt_bearer needs oauth.client": func(c *Config) { c.Grant, c.AssertionFile = JWTBearer, "x" },
		"identity_provider need each":   func(c *Config) { c.Grant, c.AssertionFile, c.ClientID = IDJAG, "x", "x" },
		"id_jag and oauth.identity_pro": func(c *Config) { c.IdentityProvider.Issuer = "https://idp.example" },
		"needs issuer and client_id": func(c *Config) {
			c.Grant, c.AssertionFile, c.ClientID, c.IdentityProvider.Issuer = IDJAG, "x", "x", "https://idp.example"
		},
		"private_key needs": func(c *Config) { c.PrivateKey = "x" },
	} {
		c := Config{Server: "s", URL: "https://a.example/mcp", Storage: Storage{State: "x"}}
		change(&c)
		require.ErrorContains(t, c.Validate(), want)
	}
}

// Assertions are verified as another program would, with each kind of key.
func TestAssertions(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	curve := func(c elliptic.Curve) *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(c, rand.Reader)
		require.NoError(t, err)
		return key
	}
	verifyEC := func(key *ecdsa.PrivateKey, hash []byte, signature []byte) bool {
		half := len(signature) / 2
		return ecdsa.Verify(&key.PublicKey, hash, new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
	}
	p256, p384, p521 := curve(elliptic.P256()), curve(elliptic.P384()), curve(elliptic.P521())
	for _, c := range []struct {
		algorithm, wanted string
		key               any
		verify            func(text, signature []byte) bool
	}{
		{"RS256", "", rsaKey, func(text, signature []byte) bool {
			sum := sha256.Sum256(text)
			return rsa.VerifyPKCS1v15(&rsaKey.PublicKey, crypto.SHA256, sum[:], signature) == nil
		}},
		{"PS256", "PS256", rsaKey, func(text, signature []byte) bool {
			sum := sha256.Sum256(text)
			return rsa.VerifyPSS(&rsaKey.PublicKey, crypto.SHA256, sum[:], signature, nil) == nil
		}},
		{"ES256", "", p256, func(text, signature []byte) bool {
			sum := sha256.Sum256(text)
			return verifyEC(p256, sum[:], signature)
		}},
		{"ES384", "ES384", p384, func(text, signature []byte) bool {
			sum := sha512.Sum384(text)
			return verifyEC(p384, sum[:], signature)
		}},
		{"ES512", "", p521, func(text, signature []byte) bool {
			sum := sha512.Sum512(text)
			return verifyEC(p521, sum[:], signature)
		}},
		{"EdDSA", "", edKey, func(text, signature []byte) bool {
			return ed25519.Verify(edKey.Public().(ed25519.PublicKey), text, signature)
		}},
	} {
		t.Run(c.algorithm, func(t *testing.T) {
			jwt, err := Config{PrivateKey: pemOf(t, c.key), KeyAlgorithm: c.wanted}.clientAssertion(registration{ClientID: "me", Issuer: "https://issuer.example"})
			require.NoError(t, err)
			parts := strings.Split(jwt, ".")
			require.Len(t, parts, 3)
			signature, err := base64.RawURLEncoding.DecodeString(parts[2])
			require.NoError(t, err)
			require.True(t, c.verify([]byte(parts[0]+"."+parts[1]), signature))
			var header, claims map[string]any
			for i, into := range []*map[string]any{&header, &claims} {
				text, err := base64.RawURLEncoding.DecodeString(parts[i])
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, into))
			}
			require.Equal(t, c.algorithm, header["alg"])
			require.Equal(t, []any{"me", "me", "https://issuer.example"}, []any{claims["iss"], claims["sub"], claims["aud"]})
			require.Greater(t, claims["exp"], claims["iat"])
		})
	}
	for key, want := range map[secret.Text]string{"none": "is not a private key in PEM", pemOf(t, rsaKey): `cannot sign with "ES256"`} {
		_, err := Config{PrivateKey: key, KeyAlgorithm: "ES256"}.clientAssertion(registration{})
		require.ErrorContains(t, err, want)
	}
}
