package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxDepth is how deep the agent may be that dispatches another: those that
// the client dispatches (depth 0) may, and those whom these dispatch.
const maxDepth = 1

// grantVariable is the variable of the environment in which an agent's grant
// travels, through mcp-host and the tools that it starts, to the
// mcp-dispatch_agent among them.
const grantVariable = "TOOLROOM_AGENT"

// grant is what an agent may have at most that is dispatched by another one:
// no call, and no model, gets more. It is sealed with a key that is in the
// state directory, out of reach of what agents run.
type grant struct {
	Depth  int       `json:"depth"` // of the agent that the grant was made for; 0: there is none, a client calls
	Until  time.Time `json:"until,omitzero"`
	Turns  int       `json:"turns,omitempty"`  // 0: no bound
	Tokens int64     `json:"tokens,omitempty"` // likewise
	Cost   float64   `json:"cost,omitempty"`   // likewise
	Tools  toolSet   `json:"tools"`            // never null, which would be all
}

// sealed writes a grant as a text.
func (g grant) sealed(key []byte) (string, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(macOf(text, key)), nil
}

func macOf(text, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// errSeal is of a grant that was not made with this key.
var errSeal = errors.New("invalid signature")

// openGrant reads what sealed wrote.
func openGrant(text string, key []byte) (g grant, err error) {
	head, tail, _ := strings.Cut(text, ".")
	body, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return g, errSeal
	}
	mac, err := base64.RawURLEncoding.DecodeString(tail)
	if err != nil || !hmac.Equal(mac, macOf(body, key)) {
		return g, errSeal
	}
	if err := json.Unmarshal(body, &g); err != nil || g.Depth < 1 {
		return g, errSeal
	}
	return g, nil
}

const keyFile, keyBytes = "agents.key", 32

// sealKey reads the key of a state directory, and makes one where there is
// none.
func sealKey(dir string) ([]byte, error) {
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
	// Of several that make one at the same time the first one wins.
	if err := os.Link(fresh, name); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(fresh, name); err != nil { // a file system without links
			return nil, err
		}
	}
	if key, err = os.ReadFile(name); err == nil && len(key) != keyBytes {
		err = errSeal
	}
	return key, err
}
