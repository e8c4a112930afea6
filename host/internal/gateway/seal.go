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

// How long a client may take to answer: a question of a modern server, which
// keeps nothing open meanwhile, and one of a legacy server, whose call waits.
const (
	stateLife = 15 * time.Minute
	parkLife  = 5 * time.Minute
)

// sealer makes the requestState that clients carry from one round to the
// next. What is in it nobody can read or change, and it holds for the same
// principal, method, name and arguments alone (AES-256-GCM, with these as
// additional data), for a time.
type sealer struct{ aead cipher.AEAD }

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

// roundState is what is kept between two rounds: the server's own state, or
// the job that waits.
type roundState struct {
	Expires int64           `json:"e"` // Unix seconds
	State   json.RawMessage `json:"s,omitempty"`
	Job     string          `json:"j,omitempty"`
}

// errState is told whatever is wrong with a state: how nearly one was forged
// is nobody's business.
var errState = errors.New("requestState belongs to another request, or has expired; repeat the request without it")

func (s sealer) close(state roundState, binding []byte) (string, error) {
	plain, err := jsonrpc.Marshal(state) // which keeps < and >
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, binding)), nil
}

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

// binding is what a state is sealed for.
func (f front) binding(principal string) []byte {
	sum := sha256.Sum256(canonical(f.arguments))
	raw, err := jsonrpc.Marshal([]string{principal, f.method, f.name, hex.EncodeToString(sum[:])})
	if err != nil { // strings always encode
		return sum[:]
	}
	return raw
}

// canonical is the one form that all texts of the same arguments have.
func canonical(arguments json.RawMessage) []byte {
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
