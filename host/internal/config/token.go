package config

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// minToken is the fewest characters a token may have.
const minToken = 16

// Token returns the bearer token of the HTTP door and where it is from: the
// file named, TOOLROOM_TOKEN, or one that was made at the first start and is
// kept in the state directory, readable by its owner alone.
func Token(tokenFile, state string, getenv func(string) string) (token, from string, err error) {
	switch {
	case tokenFile != "":
		token, err = readToken(tokenFile, false)
		return token, tokenFile, err
	case getenv("TOOLROOM_TOKEN") != "":
		token, err = checkToken(getenv("TOOLROOM_TOKEN"), "TOOLROOM_TOKEN")
		return token, "TOOLROOM_TOKEN", err
	case state == "":
		return "", "", errors.New("no directory for the token: set --state, MCP_STATE_DIR or HOME, or give a token with --token-file")
	}
	name := filepath.Join(state, "token")
	token, err = readToken(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		token, err = makeToken(name)
	}
	if errors.As(err, new(*fs.PathError)) { // the directory's, not the token's
		err = fmt.Errorf("%w; choose another directory with --state, or give a token with --token-file", err)
	}
	return token, name, err
}

// OwnToken is Token without one made at the first start: with the sign-in of
// users, the host has a token of its own only if one is given. It returns ""
// if none is.
func OwnToken(tokenFile string, getenv func(string) string) (token, from string, err error) {
	if tokenFile == "" && getenv("TOOLROOM_TOKEN") == "" {
		return "", "", nil
	}
	return Token(tokenFile, "", getenv)
}

func readToken(name string, own bool) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	if own && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("token: %s is readable by other users (mode %v); delete it, and a new one is created", name, info.Mode().Perm())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return checkToken(string(text), name)
}

func checkToken(text, from string) (string, error) {
	token := strings.TrimSpace(text)
	if len(token) < minToken {
		return "", fmt.Errorf("token: %s has %d characters; it needs at least %d", from, len(token), minToken)
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("token: %s has characters that a header cannot carry", from)
		}
	}
	return token, nil
}

// makeToken writes a new token of 32 random bytes. Of two hosts that start at
// once one makes it and the other reads it.
func makeToken(name string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	var secret [32]byte
	rand.Read(secret[:]) //nolint:errcheck // it never fails
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	f, err := os.CreateTemp(filepath.Dir(name), "token-*") // 0600
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // linked or of no use
	if _, err := f.WriteString(token + "\n"); err != nil {
		f.Close() //nolint:errcheck // the write has failed
		return "", fmt.Errorf("token: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	err = os.Link(f.Name(), name)
	if errors.Is(err, fs.ErrExist) {
		return readToken(name, true)
	}
	if err != nil { // a file system without links
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return token, nil
}
