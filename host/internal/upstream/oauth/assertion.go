package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// assertionType is the type of a signed client assertion (RFC 7523, 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// assertionLife is the time between iat and exp of an assertion.
const assertionLife = time.Minute

// clientAssertion returns a JWT that proves the possession of the private key (RFC 7523, 3). The
// audience is the issuer of the authorization server. It returns an error if the configured key
// cannot be used.
func (c Config) clientAssertion(as registration) (string, error) {
	key, err := c.privateKey()
	if err != nil {
		return "", err
	}
	algorithm, sign, err := signerOf(key, c.KeyAlgorithm)
	if err != nil {
		return "", err
	}
	now := time.Now()
	text, err := signJWT(map[string]any{"alg": algorithm, "typ": "JWT"}, map[string]any{
		"iss": as.ClientID, "sub": as.ClientID, "aud": as.Issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	}, sign)
	if err != nil {
		return "", errors.New("oauth.private_key cannot sign")
	}
	return text, nil
}

// privateKey reads the configured key: PKCS #8, PKCS #1 or SEC 1 in PEM. It returns an
// error for other text.
func (c Config) privateKey() (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(c.PrivateKey.Reveal()))
	if block == nil {
		return nil, fmt.Errorf("server %s: oauth.private_key is not a private key in PEM", c.Server)
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("server %s: oauth.private_key is not an RSA, EC or Ed25519 key", c.Server)
}

// signerOf returns the algorithm (RFC 7518, 3.1; RFC 8037) and the function that signs with a key.
// wanted is the configured algorithm; "": that of the key. It returns an error if the key cannot
// sign with it.
func signerOf(key crypto.Signer, wanted string) (algorithm string, sign func([]byte) ([]byte, error), err error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		algorithm = "RS256"
		if wanted == "PS256" {
			algorithm = wanted
		}
		sign = func(text []byte) ([]byte, error) {
			sum := sha256.Sum256(text)
			if algorithm == "PS256" {
				return rsa.SignPSS(rand.Reader, key, crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
			}
			return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		}
	case *ecdsa.PrivateKey:
		size := (key.Curve.Params().BitSize + 7) / 8
		algorithm = map[int]string{32: "ES256", 48: "ES384", 66: "ES512"}[size]
		sign = func(text []byte) ([]byte, error) {
			r, s, err := ecdsa.Sign(rand.Reader, key, hashForCurve(size, text))
			if err != nil {
				return nil, err
			}
			return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...), nil
		}
	case ed25519.PrivateKey:
		algorithm = "EdDSA"
		sign = func(text []byte) ([]byte, error) { return ed25519.Sign(key, text), nil }
	}
	if algorithm == "" || wanted != "" && wanted != algorithm {
		return "", nil, fmt.Errorf("oauth.private_key cannot sign with %q", wanted)
	}
	return algorithm, sign, nil
}

// hashForCurve returns the hash of a text for a curve whose numbers have size bytes.
func hashForCurve(size int, text []byte) []byte {
	switch size {
	case 48:
		sum := sha512.Sum384(text)
		return sum[:]
	case 66:
		sum := sha512.Sum512(text)
		return sum[:]
	}
	sum := sha256.Sum256(text)
	return sum[:]
}
