package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// NewPinStore returns a PinStore in a store. A key contains digests of the names, which
// may have any length; the value contains the names.
func NewPinStore(keys store.Keys) PinStore { return storedPins{keys} }

// storedPins reads and writes pins in a key-value store.
type storedPins struct{ keys store.Keys }

// pin is the stored value of a pinned definition.
type pin struct {
	Server     string          `json:"server"`
	Tool       string          `json:"tool"`
	Definition json.RawMessage `json:"definition,omitempty"`
	SHA256     string          `json:"sha256,omitempty"` // of a definition that is too large to store
}

// maxPinBytes leaves space for the names.
const maxPinBytes = store.MaxValue - 16<<10

// pinPrefix returns the prefix of the keys of a server's pins.
func pinPrefix(server string) string {
	sum := sha256.Sum256([]byte(server))
	return "pin/" + hex.EncodeToString(sum[:16]) + "/"
}

// Pinned returns the pinned definitions of a server's tools. It returns an error if one of
// them is malformed.
func (k storedPins) Pinned(ctx context.Context, server string) (map[string]json.RawMessage, error) {
	known := map[string]json.RawMessage{}
	prefix, after := pinPrefix(server), ""
	for {
		page, err := k.keys.List(ctx, prefix, after, store.MaxPageEntries)
		if err != nil || len(page) == 0 {
			return known, err
		}
		for _, entry := range page {
			after = entry.Key
			var p pin
			if err := json.Unmarshal(entry.Value, &p); err != nil {
				return nil, errors.New("the pin " + entry.Key + " is malformed: " + err.Error())
			}
			if p.SHA256 != "" {
				p.Definition = largePin(p.SHA256)
			}
			known[p.Tool] = p.Definition
		}
	}
}

// Pin stores a definition unless there is one: if several hosts see a tool for the
// first time, the first one pins it.
func (k storedPins) Pin(ctx context.Context, server, tool string, definition json.RawMessage) error {
	err := k.put(ctx, server, tool, definition, store.Absent)
	if toolerr.Is(err, toolerr.Conflict) {
		return nil
	}
	return err
}

// Repin replaces the stored definition.
func (k storedPins) Repin(ctx context.Context, server, tool string, definition json.RawMessage) error {
	return k.put(ctx, server, tool, definition, store.Any)
}

// put stores the definition of a tool, or its hash if it is longer than maxPinBytes. version is
// the version that it replaces; see store.Keys.Put for the errors.
func (k storedPins) put(ctx context.Context, server, tool string, definition json.RawMessage, version store.Version) error {
	p := pin{Server: server, Tool: tool, Definition: definition}
	if len(definition) > maxPinBytes {
		sum := sha256.Sum256(definition)
		p.Definition, p.SHA256 = nil, hex.EncodeToString(sum[:])
	}
	value, err := jsonrpc.Marshal(p) // without changing the definition
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(tool))
	_, err = k.keys.Put(ctx, pinPrefix(server)+hex.EncodeToString(sum[:16]), value, version, time.Time{})
	return err
}

// largePin returns the value for a definition of which only the digest is stored.
func largePin(sum string) json.RawMessage { return json.RawMessage(`"sha256:` + sum + `"`) }

// equalsPin reports whether a canonical definition equals the pinned one.
func equalsPin(was, is json.RawMessage) bool {
	if len(is) > maxPinBytes && len(was) < maxPinBytes {
		sum := sha256.Sum256(is)
		is = largePin(hex.EncodeToString(sum[:]))
	}
	return string(was) == string(is)
}
