package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	checksumsFile = "checksums.txt"
	signatureFile = checksumsFile + ".sig"
	keyVariable   = "TOOLROOM_SIGNING_KEY"
)

// checksums writes the SHA-256 of every file, in the format of sha256sum, and signs
// that list if a key is given.
func (r *Release) checksums() error {
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.hashes)) {
		fmt.Fprintf(&list, "%s  %s\n", r.hashes[name], name)
	}
	text := []byte(list.String())
	if err := os.WriteFile(filepath.Join(r.Out, checksumsFile), text, 0o644); err != nil {
		return err
	}
	key := os.Getenv(keyVariable)
	if key == "" {
		return nil
	}
	signature, err := sign(key, text)
	if err != nil {
		return fmt.Errorf("%s: %w", keyVariable, err)
	}
	return os.WriteFile(filepath.Join(r.Out, signatureFile), signature, 0o644)
}

// sign returns the signature that cosign sign-blob makes with a key: ECDSA over the
// SHA-256 of the text, in base64. The key is a P-256 private key in PEM form, PKCS #8
// or SEC 1.
func sign(key string, text []byte) ([]byte, error) {
	block, _ := pem.Decode([]byte(key))
	if block == nil {
		return nil, errors.New("no PEM block; give the private key itself, such as the output of openssl genpkey")
	}
	var private *ecdsa.PrivateKey
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		private, _ = parsed.(*ecdsa.PrivateKey)
	} else if private, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
		return nil, fmt.Errorf("a PEM block of type %q is no unencrypted private key", block.Type)
	}
	if private == nil || private.Curve != elliptic.P256() {
		return nil, errors.New("the key is not one for ECDSA with P-256")
	}
	sum := sha256.Sum256(text)
	signature, err := private.Sign(nil, sum[:], crypto.SHA256) // without randomness: RFC 6979
	if err != nil {
		return nil, err
	}
	return append([]byte(base64.StdEncoding.EncodeToString(signature)), '\n'), nil
}
