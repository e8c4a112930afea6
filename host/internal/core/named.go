package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// sessionBytes is how much of a hash names a session.
const sessionBytes = 16

// named tells a tool made with our kit which session a call belongs to, so
// that it keeps apart what each of them has seen. Other tools get the call as
// it is: a session is nobody else's business.
func (a *App) named(req *call.Request) (*call.Request, error) {
	if !req.Tool.Validates || a.Config.Joined { // the host that is joined names it
		return req, nil
	}
	name := jsonrpc.AppendString(nil, a.session(req))
	params, err := setMeta(req.Params, wire.MetaClient, name)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "params of tools/call: %w", err)
	}
	other := *req
	other.Params = params
	return &other, nil
}

// session names the session of a call: that of the client at the front door,
// an agent having its own. The client's own word (wire.MetaClient), as
// another host gives it, divides its session further and leads to no other
// client's. The name cannot be turned back, and differs from host to host.
func (a *App) session(req *call.Request) string {
	hash := sha256.New()
	add := func(part []byte) {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		hash.Write(part)
	}
	c := req.Caller
	add(a.secret[:])
	add([]byte(c.Door))
	add([]byte(c.ID))
	add(binary.BigEndian.AppendUint64(nil, uint64(c.Depth)))
	add([]byte(c.Agent))
	add(bytes.TrimSpace(jsonrpc.MemberOf(jsonrpc.MemberOf(req.Params, "_meta"), wire.MetaClient)))
	return hex.EncodeToString(hash.Sum(nil)[:sessionBytes])
}
