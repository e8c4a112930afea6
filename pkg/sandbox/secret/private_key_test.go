package secret_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

func TestIsPrivateKey(t *testing.T) {
	keys := map[string]string{
		"pkcs8": "-----BEGIN PRIVATE KEY-----\nMIIE\n", "rsa": "-----BEGIN RSA PRIVATE KEY-----\r\nMIIE\r\n",
		"openssh": "-----BEGIN OPENSSH PRIVATE KEY-----\n", "encrypted": "-----BEGIN ENCRYPTED PRIVATE KEY-----",
		"pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n", "bom": "\xef\xbb\xbf-----BEGIN EC PRIVATE KEY-----\n",
		"blank": "\n\n  -----BEGIN EC PRIVATE KEY-----\n", "id_x.pub": "-----BEGIN EC PRIVATE KEY-----\n",
		"ecparam":              "-----BEGIN EC PARAMETERS-----\nBggq\n-----END EC PARAMETERS-----\n-----BEGIN EC PRIVATE KEY-----\n",
		"pkcs12":               "Bag Attributes\n    friendlyName: x\nKey Attributes: <No Attributes>\n-----BEGIN PRIVATE KEY-----\nMIIE\n",
		"behind a certificate": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nMIIE\n",
		"behind a public key":  "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
		"behind comments":      "# the key of the server\n\n# and more\n-----BEGIN PRIVATE KEY-----\nMIIE\n",
		"far behind":           "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("MIIB\n", 10_000) + "-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nMIIE\n",
		"swap of vim":          "b0VIM 9.1\x00" + strings.Repeat("\x00", 8182) + "MIIE\x00-----BEGIN RSA PRIVATE KEY-----\x00",
		"undo of vim":          "Vim\x9fUnDo\xe5\x00\x03" + strings.Repeat("x", 2000) + "-----BEGIN PGP PRIVATE KEY BLOCK-----\x00",
		"utf16le":              wide("-----BEGIN RSA PRIVATE KEY-----\r\nMIIE\r\n", binary.LittleEndian),
		"utf16be":              wide("-----BEGIN RSA PRIVATE KEY-----\r\nMIIE\r\n", binary.BigEndian),
		"utf16le, no mark":     wide("-----BEGIN RSA PRIVATE KEY-----\r\nMIIE\r\n", binary.LittleEndian)[2:],
		"utf16be, no mark":     wide("\n# key\n-----BEGIN RSA PRIVATE KEY-----\r\nMIIE\r\n", binary.BigEndian)[2:],
		"PuTTY":                "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n",
		"SSH2":                 "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: x\n",
		"age":                  "# created: 2026-01-01T00:00:00Z\n# public key: age1x\nAGE-SECRET-KEY-1QQ\n",
		"minisign":             "untrusted comment: minisign encrypted secret key\nRWQ\n",
	}
	others := map[string]string{
		"chain":     strings.Repeat("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n", 50),
		"commented": "# how to make one\nopenssl genrsa\n-----BEGIN PRIVATE KEY-----\n", "script": "#!/bin/sh\ncat <<END\n-----BEGIN PRIVATE KEY-----\n",
		"swap of a text": "b0VIM 9.1\x00" + strings.Repeat("\x00", 8182) + "-----BEGIN CERTIFICATE-----\x00",
		"cert":           "-----BEGIN CERTIFICATE-----\nMIIE\n", "public": "-----BEGIN PUBLIC KEY-----\n", "empty": "",
		"about": "A key begins with\n-----BEGIN PRIVATE KEY-----\n", "short": "-----BEGIN",
		"age, public": "# public key: age1x\nage1x\n", "minisign, public": "untrusted comment: minisign public key 1\nRWQ\n", "SSH2, public": "---- BEGIN SSH2 PUBLIC KEY ----\n",
		"about PuTTY": "Files begin with\nPuTTY-User-Key-File-3: x\n", "zeros": "\x00\x00\x00\x00",
		"params": "-----BEGIN DH PARAMETERS-----\nMIIB\n-----END DH PARAMETERS-----\n", "bag": "Bag Attributes\n",
	}
	for name, content := range keys {
		require.True(t, secret.IsPrivateKey([]byte(content)), name)
		is, err := secret.ReadPrivateKey(strings.NewReader(content))
		require.True(t, is && err == nil, name)
	}
	for name, content := range others {
		require.False(t, secret.IsPrivateKey([]byte(content)), name)
		is, err := secret.ReadPrivateKey(strings.NewReader(content))
		require.False(t, is || err != nil, name)
	}
}

// wide is ASCII text as UTF-16 with its byte order mark.
func wide(text string, order binary.AppendByteOrder) string {
	out := order.AppendUint16(nil, 0xfeff)
	for _, c := range []byte(text) {
		out = order.AppendUint16(out, uint16(c))
	}
	return string(out)
}
