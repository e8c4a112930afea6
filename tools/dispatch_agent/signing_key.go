package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// keyFile is the name of the key in a state directory; it has keyBytes bytes.
const keyFile, keyBytes = "agents.key", 32

// signingKey returns the key of a state directory. It creates the key, and the
// directory, if they do not exist; if several processes do so at the same time, all get
// the same key. It returns INTERNAL for a file that is no key.
func signingKey(dir string) ([]byte, error) {
	name := filepath.Join(dir, keyFile)
	key, err := os.ReadFile(name)
	switch {
	case err == nil && len(key) == keyBytes:
		return key, nil
	case err == nil:
		return nil, toolerr.New(toolerr.Internal, "%s is damaged: remove it", name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	fresh := filepath.Join(dir, keyFile+"."+strings.ToLower(rand.Text()[:8]))
	made := make([]byte, keyBytes)
	rand.Read(made) //nolint:errcheck // never fails, as documented
	if err := os.WriteFile(fresh, made, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(fresh) //nolint:errcheck // one that stays is never read
	// If several processes create the key at the same time, the first one
	// wins.
	if err := os.Link(fresh, name); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(fresh, name); err != nil { // the file system has no hard links
			return nil, err
		}
	}
	if key, err = os.ReadFile(name); err == nil && len(key) != keyBytes {
		err = errSignature
	}
	return key, err
}
