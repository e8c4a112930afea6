package main

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// beginsLikeKey reports whether a file begins like a private key.
func beginsLikeKey(raw []byte) bool {
	return secret.IsPrivateKey(raw[:min(len(raw), secret.KeyHeadBytes)])
}

// isDeniedKey reports whether a file is a private key that the user did not
// allow.
func (w *searcher) isDeniedKey(path string, raw []byte) bool {
	if !beginsLikeKey(raw) {
		return false
	}
	file, err := w.fs.Open(filepath.Join(w.abs, filepath.FromSlash(path)))
	if err != nil {
		return true
	}
	file.Close()
	return false
}
