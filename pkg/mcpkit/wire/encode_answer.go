package wire

import (
	"bytes"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// encodeAnswer returns the line of the answer, without its newline, in parts. A
// large result is a part by itself, to avoid a copy.
func (req *request) encodeAnswer(response mcp.JSONRPCMessage) (parts [][]byte) {
	if object := req.rawError(); object != nil {
		return [][]byte{jsonrpc.AppendErrorObject(nil, req.id, object)}
	}
	switch r := response.(type) {
	case mcp.JSONRPCError:
		if object, err := jsonrpc.Marshal(r.Error); err == nil {
			return [][]byte{jsonrpc.AppendErrorObject(nil, req.id, PlainError(object))}
		}
	case mcp.JSONRPCResponse:
		result, err := req.encodeResult(r.Result)
		if err == nil && len(result) >= maxJoinedBytes {
			return [][]byte{jsonrpc.AppendResultHead(nil, req.id), result, []byte("}")}
		}
		if err == nil {
			return [][]byte{jsonrpc.AppendResult(make([]byte, 0, len(result)+len(req.id)+48), req.id, result)}
		}
		req.conn.logf("cannot encode the result of %s: %v", req.method, err)
	}
	return [][]byte{jsonrpc.AppendError(nil, req.id, jsonrpc.CodeInternal, "internal error: "+req.method+" returned an unusable answer")}
}

// encodeResult returns the result set by SetRawResult, or else encodes mcp-go's
// result, on one line.
func (req *request) encodeResult(result any) (json.RawMessage, error) {
	req.mu.Lock()
	raw := req.rawResult
	req.mu.Unlock()
	if raw != nil {
		if bytes.IndexByte(raw, '\n') < 0 {
			return raw, nil
		}
		var one bytes.Buffer
		err := json.Compact(&one, raw)
		return one.Bytes(), err
	}
	if closed, ok := result.(mcp.SubscriptionsListenResult); ok {
		// The id as received; mcp-go has converted it to a float64.
		closed.EnsureResultMeta().SetSubscriptionID(req.id)
		result = closed
	}
	return jsonrpc.Marshal(result)
}
