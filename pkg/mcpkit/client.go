package mcpkit

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// maxSession bounds a session's name in bytes; longer names are ignored.
const maxSessionName = 256

// ClientSession returns the name of the session that ctx's request belongs to,
// from its wire.MetaClient member; "" if there is no valid name. The client chooses
// the name, so use it only to tell that client's sessions apart.
func ClientSession(ctx context.Context) string {
	var name string
	raw := jsonrpc.MemberOf(jsonrpc.MemberOf(wire.RawParams(ctx), "_meta"), wire.MetaClient)
	if json.Unmarshal(raw, &name) != nil || len(name) > maxSessionName {
		return ""
	}
	return name
}

// ClientRoots returns the directories that the caller's client offers as roots,
// as local paths. It returns nil for a client that offers none, and for every
// client of the modern protocol. A legacy client is asked at the first call
// that needs its roots, and again after it reports a changed list. If a client
// does not answer within five seconds, it counts as offering no roots until it
// does.
func ClientRoots(ctx context.Context) ([]string, error) { return wire.ClientRoots(ctx) }

// Confirm asks the user to agree to something (elicitation), through the client
// of ctx's call. asked is false if the user cannot be asked: the client did not
// offer elicitation, or it speaks the modern protocol, in which servers send no
// requests.
func Confirm(ctx context.Context, message string) (agreed, asked bool, err error) {
	return wire.Confirm(ctx, message)
}

// Progress reports the progress of a long call to the client. It does nothing
// if the client sent no progress token. Otherwise it sends at most one
// notification a second, only with a larger done, and none after the answer, so
// a tool may call it as often as it likes. A total of 0 means unknown.
func Progress(ctx context.Context, done, total float64, message string) {
	wire.Progress(ctx, done, total, message)
}

// Causes of the context of a call.
var (
	// ErrStopped means that the server is stopping: the call must kill its
	// processes at once, without a grace period.
	ErrStopped = wire.ErrStopped
	// ErrCancelled means that the client cancelled the call.
	ErrCancelled = wire.ErrCancelled
)
