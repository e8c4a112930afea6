package accesstoken_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
)

// server is an authorization server.
type server struct {
	*httptest.Server
	keyReads, introspections atomic.Int32

	mu       sync.Mutex
	metadata map[string]any // nil: not found
	keys     []jose.JSONWebKey
	active   map[string]map[string]any // by opaque tokens
	broken   http.HandlerFunc          // in place of all answers, unless nil
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{active: map[string]map[string]any{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		reply := func(v any) {
			if json.NewEncoder(w).Encode(v) != nil {
				panic(http.ErrAbortHandler)
			}
		}
		switch {
		case s.broken != nil:
			s.broken(w, r)
		case r.URL.Path == "/.well-known/openid-configuration" && s.metadata != nil:
			reply(s.metadata)
		case r.URL.Path == "/keys":
			s.keyReads.Add(1)
			reply(jose.JSONWebKeySet{Keys: s.keys})
		case r.URL.Path == "/introspect" && r.Method == http.MethodPost:
			s.introspections.Add(1)
			if id, key, _ := r.BasicAuth(); id != "host" || key != "k%26y" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if claims := s.active[r.FormValue("token")]; claims != nil {
				reply(claims)
				return
			}
			reply(map[string]any{"active": false})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	s.metadata = map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys", "introspection_endpoint": s.URL + "/introspect"}
	return s
}

// set changes what the server answers.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// key is a signing key of a server.
type key struct {
	id      string
	private *ecdsa.PrivateKey
}

func (s *server) newKey(t *testing.T, id string) key {
	t.Helper()
	k := key{id, newPrivate(t)}
	s.set(func() {
		s.keys = append(s.keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: id, Algorithm: string(jose.ES256), Use: "sig"})
	})
	return k
}

func newPrivate(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return private
}

// sign makes a token. header adds to or replaces the members of the header.
func sign(t *testing.T, alg jose.SignatureAlgorithm, with any, header map[jose.HeaderKey]any, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	for name, value := range header {
		options.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: with}, options)
	require.NoError(t, err)
	text, err := json.Marshal(claims)
	require.NoError(t, err)
	signed, err := signer.Sign(text)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

func (k key) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	return sign(t, jose.ES256, k.private, map[jose.HeaderKey]any{"kid": k.id, "typ": "at+jwt"}, claims)
}

// public returns a key's public half in the form in which a forger could use
// it as a secret.
func (k key) public(t *testing.T) []byte {
	t.Helper()
	text, err := jose.JSONWebKey{Key: crypto.PublicKey(k.private.Public()), KeyID: k.id}.MarshalJSON()
	require.NoError(t, err)
	return text
}

const here = "https://tools.example.com"

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// claims returns those of a token that is accepted, changed by some: nil
// removes a claim.
func (s *server) claims(changes map[string]any) map[string]any {
	claims := map[string]any{
		"iss": s.URL, "aud": here + "/mcp", "sub": "alice", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "scope": "tools other",
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// verifier returns one at a clock that can be set.
func (s *server) verifier(t *testing.T, change func(*accesstoken.Config)) (v *accesstoken.Verifier, clock *atomic.Pointer[time.Time]) {
	t.Helper()
	clock = &atomic.Pointer[time.Time]{}
	clock.Store(&now)
	c := accesstoken.Config{Issuer: s.URL, URL: here, Now: func() time.Time { return *clock.Load() }}
	if change != nil {
		change(&c)
	}
	v, err := accesstoken.New(c)
	require.NoError(t, err)
	return v, clock
}
