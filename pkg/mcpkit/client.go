package mcpkit

import (
	"context"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// maxSessionName bounds a session's name in bytes; longer names are ignored.
const maxSessionName = 256

// ClientSession returns the name of the session that ctx's request belongs to,
// from the _meta member wire.MetaClient; "" if there is no valid name. The
// client chooses the name, so use it only to tell that client's sessions apart.
func ClientSession(ctx context.Context) string {
	var name string
	raw := jsonrpc.MemberOf(jsonrpc.MemberOf(wire.RawParams(ctx), "_meta"), wire.MetaClient)
	if json.Unmarshal(raw, &name) != nil || len(name) > maxSessionName {
		return ""
	}
	return name
}

// ClientRoots returns the directories that the calling client offers as roots,
// as local paths. It returns nil for a client that offers none, and for every
// client of the modern protocol. A legacy client is asked at the first call
// that needs its roots, and again after it reports a changed list. A client
// that does not answer within five seconds counts as offering no roots until it
// answers. The error says that ctx ended.
func ClientRoots(ctx context.Context) ([]string, error) { return wire.ClientRoots(ctx) }

// Confirm asks the user, through the client of ctx's call, to agree to message
// (elicitation), and waits for the answer. asked is false if the user cannot be
// asked: the client does not offer elicitation, or it speaks the modern
// protocol, in which servers send no requests. err is non-nil if the client did
// not answer properly or ctx ended; agreed is then false.
func Confirm(ctx context.Context, message string) (agreed, asked bool, err error) {
	return wire.Confirm(ctx, message)
}

// Progress reports the progress of a long call to the client: done of total
// units, or of an unknown number if total is 0. It does nothing if the client
// sent no progress token. Otherwise it sends at most one notification a second,
// only with a larger done, and none after the answer, so a tool may call it as
// often as it likes.
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
