package main

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// looksLikeKey reports whether a file begins like a private key.
func looksLikeKey(raw []byte) bool { return secret.IsPrivateKey(raw[:min(len(raw), keyHead)]) }

// isKey reports whether a file is a private key that the user did not allow.
func (w *searcher) isKey(path string, raw []byte) bool {
	if !looksLikeKey(raw) {
		return false
	}
	file, err := w.fs.Open(filepath.Join(w.abs, filepath.FromSlash(path)))
	if err != nil {
		return true
	}
	file.Close()
	return false
}
