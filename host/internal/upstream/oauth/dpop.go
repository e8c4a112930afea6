package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// dpopScheme is the scheme and the type of tokens that are bound to a key (RFC 9449).
const dpopScheme = "DPoP"

// dpopAlgorithm is the only algorithm of the keys that the host makes.
const dpopAlgorithm = "ES256"

// newProofKey returns a key for proofs of possession, in PEM.
func newProofKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// errDamagedKey is the error for a stored key that cannot be used.
var errDamagedKey = errors.New("the key that the tokens are bound to is damaged; run mcp-host logout, then mcp-host login")

// proofOfPossession returns a proof of possession for one request (RFC 9449, 4.2). token is the
// access token that the request carries, "" for requests to the token endpoint;
// nonce is the last one that the server sent; "": none. The error is errDamagedKey, or that of
// signing.
func proofOfPossession(key, method string, to *url.URL, token, nonce string) (string, error) {
	block, _ := pem.Decode([]byte(key))
	if block == nil {
		return "", errDamagedKey
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || private.Curve != elliptic.P256() {
		return "", errDamagedKey
	}
	point, err := private.PublicKey.Bytes() // 4, X, Y
	if err != nil || len(point) != 65 {
		return "", errDamagedKey
	}
	encode := base64.RawURLEncoding.EncodeToString
	address := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": address.String(), "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = encode(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	return signJWT(map[string]any{
		"typ": "dpop+jwt", "alg": dpopAlgorithm,
		"jwk": map[string]string{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])},
	}, claims, func(text []byte) ([]byte, error) {
		_, sign, err := signerOf(private, "")
		if err != nil {
			return nil, err
		}
		return sign(text)
	})
}

// signJWT returns a JWT with these header and claims, signed by sign. It returns the error
// of sign.
func signJWT(header, claims map[string]any, sign func([]byte) ([]byte, error)) (string, error) {
	first, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	second, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(first) + "." + base64.RawURLEncoding.EncodeToString(second)
	signature, err := sign([]byte(text))
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// Sign adds the token to a request to the server: as Bearer, or with a proof of
// possession if it is bound to a key. It fails only if the key of the
// proof is damaged.
func (s *Source) Sign(req *http.Request, token string) error {
	t := s.cached.Load()
	if accessOf(t) != token {
		t = s.before.Load() // replaced since Token returned it
	}
	if t == nil || t.Access != token || t.Scheme != dpopScheme {
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	nonce, _ := s.nonce.Load().(string)
	text, err := proofOfPossession(t.Key, req.Method, req.URL, token, nonce)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", dpopScheme+" "+token)
	req.Header.Set("DPoP", text)
	return nil
}

// Received notes that the server accepted a token, and takes the nonce from its answer
// (RFC 9449, 9), for the next proof. It reports whether the server refused a proof for lack of a nonce.
func (s *Source) Received(res *http.Response) (repeat bool) {
	s.noteAccepted(res)
	nonce := res.Header.Get("DPoP-Nonce")
	if nonce == "" || len(nonce) > maxNonce || !isHeaderText(nonce) {
		return false
	}
	s.nonce.Store(nonce)
	proved := res.Request != nil && res.Request.Header.Get("DPoP") != ""
	return proved && res.StatusCode == http.StatusUnauthorized && ParseChallenge(res.Header.Values("WWW-Authenticate")).Error == "use_dpop_nonce"
}

// maxNonce bounds a nonce, in bytes.
const maxNonce = 4 << 10
