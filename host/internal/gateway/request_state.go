package gateway

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// The time that a client has to answer a question of a modern server, which keeps
// nothing open, and of a legacy server, whose call waits.
const (
	stateLifetime = 15 * time.Minute
	parkLifetime  = 5 * time.Minute
)

// sealer creates the requestState that clients send back in the next round. Nobody can
// read or change its content. It is valid for a limited time and only for the same
// principal, method, name and arguments, which are the additional data of AES-256-GCM.
type sealer struct{ aead cipher.AEAD }

// newSealer returns a sealer with a new random key, so that no other process can open its
// states. It fails only without a source of random numbers.
func newSealer() (sealer, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return sealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

// roundState is the content of a requestState: the server's own state, or the id of
// the parked job.
type roundState struct {
	Expires int64           `json:"e"` // Unix seconds
	State   json.RawMessage `json:"s,omitempty"`
	Job     string          `json:"j,omitempty"`
}

// errState is the same for every invalid state, so that it does not reveal how close a
// forgery was.
var errState = errors.New("requestState belongs to another request, or has expired; repeat the request without it")

// seal encrypts a state as the text of a requestState. Only open with the same binding
// accepts it.
func (s sealer) seal(state roundState, binding []byte) (string, error) {
	plain, err := jsonrpc.Marshal(state) // without escaping < and >
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, binding)), nil
}

// open decrypts a requestState. It returns errState if it was not sealed by this sealer
// with this binding, or is too old.
func (s sealer) open(raw json.RawMessage, binding []byte, now time.Time) (roundState, error) {
	var text string
	var state roundState
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return state, errState
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return state, errState
	}
	plain, err := s.aead.Open(nil, nil, sealed, binding)
	if err != nil || json.Unmarshal(plain, &state) != nil || now.Unix() > state.Expires {
		return roundState{}, errState
	}
	return state, nil
}

// sealBinding returns the data to which a request's state is bound: principal, method, name
// and arguments. Another request cannot use the state.
func (f requestParams) sealBinding(principal string) []byte {
	sum := sha256.Sum256(canonicalJSON(f.arguments))
	raw, err := jsonrpc.Marshal([]string{principal, f.method, f.name, hex.EncodeToString(sum[:])})
	if err != nil { // strings can always be encoded
		return sum[:]
	}
	return raw
}

// canonicalJSON returns the same text for all encodings of the same arguments.
func canonicalJSON(arguments json.RawMessage) []byte {
	if len(arguments) == 0 || string(arguments) == "null" {
		return []byte(`{}`)
	}
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return arguments
	}
	raw, err := jsonrpc.Marshal(value)
	if err != nil {
		return arguments
	}
	return raw
}
