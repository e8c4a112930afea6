package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxElicited bounds the recorded elicitations in URL mode.
const maxElicited = 4096

// elicitations records which legacy client was asked by an elicitation in URL mode, so that its
// completion, which names only the elicitation, reaches that client.
type elicitations struct {
	mu      sync.Mutex
	clients map[elicitation]string // identity of the client
}

// elicitation identifies an elicitation in URL mode: the ids of two servers can be equal.
type elicitation struct{ server, id string }

// record records the client that gets a question of a server with these params; server "" is
// the host itself. It forgets another elicitation if there are maxElicited.
func (e *elicitations) record(server string, params json.RawMessage, client string) {
	var id string
	if json.Unmarshal(jsonrpc.MemberOf(params, "elicitationId"), &id) != nil || id == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clients == nil {
		e.clients = map[elicitation]string{}
	}
	if len(e.clients) >= maxElicited {
		for other := range e.clients {
			delete(e.clients, other)
			break
		}
	}
	e.clients[elicitation{server, id}] = client
}

// recordError records the elicitations of an error that requires them.
func (e *elicitations) recordError(err error, client string) {
	var answered *call.MCPError
	if !errors.As(err, &answered) || !bytes.Contains(answered.Object, []byte("elicitationId")) {
		return
	}
	elicitations, err := jsonrpc.Items(jsonrpc.MemberOf(jsonrpc.MemberOf(answered.Object, "data"), "elicitations"))
	if err != nil {
		return
	}
	for _, params := range elicitations {
		e.record(answered.Server, params, client)
	}
}

// take returns the client that was asked, and forgets the elicitation; "" if it is
// unknown. params are the params of the completion, sent by the server, or by the host if server is "".
func (e *elicitations) take(server string, params json.RawMessage) (client string) {
	var id string
	if json.Unmarshal(jsonrpc.MemberOf(params, "elicitationId"), &id) != nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := elicitation{server, id}
	client = e.clients[key]
	delete(e.clients, key)
	return client
}
