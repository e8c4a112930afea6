package mcpkit

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// MetaClient is the _meta member that names the session a call belongs to: a
// host that calls tools for several clients sends the same string with all
// calls of a session.
const MetaClient = "toolroom/client"

// maxSession bounds a session's name in bytes; longer names are ignored.
const maxSession = 256

// ClientSession returns the name of the session that ctx's request belongs to,
// from its MetaClient member; "" if there is no valid name. The client chooses
// the name, so use it only to tell that client's sessions apart.
func ClientSession(ctx context.Context) string {
	var name string
	raw := jsonrpc.MemberOf(jsonrpc.MemberOf(RawParams(ctx), "_meta"), MetaClient)
	if json.Unmarshal(raw, &name) != nil || len(name) > maxSession {
		return ""
	}
	return name
}
