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

// minToken is the minimum length of a token in characters.
const minToken = 16

// Token returns the bearer token of the HTTP server and its source: the named file,
// TOOLROOM_TOKEN, or a token that was created at the first start and is stored in the
// state directory, readable only by its owner.
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
	if errors.As(err, new(*fs.PathError)) { // an error of the directory instead of the token
		err = fmt.Errorf("%w; choose another directory with --state, or give a token with --token-file", err)
	}
	return token, name, err
}

// OwnToken does the same as Token without creating a token: with the sign-in of users, the
// host has its own token only if the flag or the variable names it. Otherwise it returns ""
// without an error.
func OwnToken(tokenFile string, getenv func(string) string) (token, from string, err error) {
	if tokenFile == "" && getenv("TOOLROOM_TOKEN") == "" {
		return "", "", nil
	}
	return Token(tokenFile, "", getenv)
}

// readToken reads a token file. With own, the file must not be readable by other users,
// except on Windows. It returns the errors of checkToken.
func readToken(name string, own bool) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		if !own && errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("token: %s does not exist: create it, or correct --token-file", name)
		}
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

// checkToken returns the token in a text without white space around it. It returns an
// error if it is too short, or no header can carry it. from names its origin.
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

// makeToken creates a token file with 32 random bytes, readable by the user only, and
// returns the token. If another host creates the file at the same time, it returns that
// token.
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
	defer os.Remove(f.Name()) //nolint:errcheck // it was linked, or is not needed
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
	if err != nil { // the file system has no links
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return token, nil
}
