package catalog

import (
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// metaCall is the _meta member in which tools made with mcpkit tell a host how to call
// them.
const metaCall = "toolroom/call"

// callTraits returns the call traits of a definition with these members. A member with an
// unexpected type counts as missing.
func callTraits(members []jsonrpc.Member) (t call.Traits) {
	var ours json.RawMessage
	for _, m := range members {
		switch m.Name {
		case "inputSchema":
			t.Input = m.Value
		case "outputSchema":
			if !isNull(m.Value) {
				t.Output = m.Value
			}
		case "annotations":
			t.ReadOnly = string(jsonrpc.MemberOf(m.Value, "readOnlyHint")) == "true"
			t.Idempotent = string(jsonrpc.MemberOf(m.Value, "idempotentHint")) == "true"
		case "_meta":
			ours = jsonrpc.MemberOf(m.Value, metaCall)
		}
	}
	var said struct {
		Validates  bool   `json:"validates"`
		TimeoutMS  *int64 `json:"timeoutMs"`
		Concurrent int    `json:"concurrency"`
		Control    bool   `json:"control"`
	}
	if ours != nil && json.Unmarshal(ours, &said) == nil {
		t.Validates, t.Control, t.MaxConcurrent = said.Validates, said.Control, max(0, said.Concurrent)
		if said.TimeoutMS != nil {
			t.OwnsDeadline = *said.TimeoutMS == 0
			const most = int64(24 * time.Hour / time.Millisecond)
			t.Timeout = time.Duration(min(max(0, *said.TimeoutMS), most)) * time.Millisecond
		}
	}
	return t
}
