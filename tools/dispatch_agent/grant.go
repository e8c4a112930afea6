package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// maxDepth is the largest depth of an agent that may dispatch agents. A client
// has depth 0, the agents that it dispatches have depth 1.
const maxDepth = 1

// grantVariable is the environment variable that carries an agent's grant
// through mcp-host and its tools to a nested mcp-dispatch_agent.
const grantVariable = "TOOLROOM_AGENT"

// grant holds the upper limits for the agents that an agent dispatches; no
// argument can raise them. It is signed with a key in the state directory,
// which commands run by agents cannot read.
type grant struct {
	Depth  int       `json:"depth"` // of the agent that holds the grant; 0: no grant, the caller is a client
	Until  time.Time `json:"until,omitzero"`
	Turns  int       `json:"turns,omitempty"`  // 0: no limit
	Tokens int64     `json:"tokens,omitempty"` // 0: no limit
	Cost   float64   `json:"cost,omitempty"`   // 0: no limit
	Tools  toolSet   `json:"tools"`            // never null, which would mean all tools
}

// sign encodes and signs a grant, for grantVariable.
func (g grant) sign(key []byte) (string, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(hmacOf(text, key)), nil
}

// hmacOf returns the HMAC-SHA256 of text with key.
func hmacOf(text, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// errSignature is returned for a grant that was not signed with this key.
var errSignature = errors.New("invalid signature")

// verifyGrant decodes a grant and verifies its signature. It returns
// errSignature if the text is not a valid grant.
func verifyGrant(text string, key []byte) (g grant, err error) {
	head, tail, _ := strings.Cut(text, ".")
	body, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return g, errSignature
	}
	mac, err := base64.RawURLEncoding.DecodeString(tail)
	if err != nil || !hmac.Equal(mac, hmacOf(body, key)) {
		return g, errSignature
	}
	if err := json.Unmarshal(body, &g); err != nil || g.Depth < 1 {
		return g, errSignature
	}
	return g, nil
}
