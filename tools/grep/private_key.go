package main

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// keyHead is the size of the beginning of a file that is checked for a private
// key, in bytes.
const keyHead = 1 << 10

// beginsLikeKey reports whether a file begins like a private key.
func beginsLikeKey(raw []byte) bool { return secret.IsPrivateKey(raw[:min(len(raw), keyHead)]) }

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
