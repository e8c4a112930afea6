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

// sessionBytes is the number of bytes of the hash in a session name.
const sessionBytes = 16

// withSession adds the session's name to the params of a call of a tool made with mcpkit,
// which keeps separately what each session has viewed. Other tools get the call unchanged,
// since session names are private. It returns INVALID_PARAMS if _meta is malformed.
func (a *App) withSession(req *call.Request) (*call.Request, error) {
	if !req.Tool.Validates || a.Config.Joined { // a joined host names the session itself
		return req, nil
	}
	name := jsonrpc.AppendString(nil, a.sessionName(req))
	params, err := setMeta(req.Params, wire.MetaClient, name)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "params of tools/call: %w", err)
	}
	other := *req
	other.Params = params
	return &other, nil
}

// sessionName returns the name of a call's session: that of the client, or of the
// agent. The client's own session name (wire.MetaClient), which another host sends,
// divides its session further and cannot select another client's. The name is a hash
// that differs between hosts.
func (a *App) sessionName(req *call.Request) string {
	hash := sha256.New()
	add := func(part []byte) {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		hash.Write(part)
	}
	c := req.Caller
	add(a.sessionKey[:])
	add([]byte(c.EntryPoint))
	add([]byte(c.ID))
	add(binary.BigEndian.AppendUint64(nil, uint64(c.Depth)))
	add([]byte(c.Agent))
	add(bytes.TrimSpace(jsonrpc.MemberOf(jsonrpc.MemberOf(req.Params, "_meta"), wire.MetaClient)))
	return hex.EncodeToString(hash.Sum(nil)[:sessionBytes])
}
