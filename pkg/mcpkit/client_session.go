package mcpkit

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// MetaClient is the _meta member by which a host that calls tools for several
// clients tells their sessions apart: a string that is the same for all calls
// of one session.
const MetaClient = "toolroom/client"

// maxSession bounds the name of a session; a longer one is not a name.
const maxSession = 256

// ClientSession returns the name of the session, behind the client, that the
// request of ctx belongs to, as MetaClient has it; "" when the client names
// none. It is the client's word: it must only tell that client's sessions
// apart.
func ClientSession(ctx context.Context) string {
	var name string
	raw := jsonrpc.MemberOf(jsonrpc.MemberOf(RawParams(ctx), "_meta"), MetaClient)
	if json.Unmarshal(raw, &name) != nil || len(name) > maxSession {
		return ""
	}
	return name
}
