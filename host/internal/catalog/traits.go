package catalog

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// metaCall is the _meta member in which tools made with mcpkit tell a host how to call
// them.
const metaCall = "toolroom/call"

// traits returns the call traits of a definition. A member with an unexpected type
// counts as missing.
func traits(definition json.RawMessage) call.Traits {
	var d struct {
		Input       json.RawMessage            `json:"inputSchema"`
		Output      json.RawMessage            `json:"outputSchema"`
		Annotations json.RawMessage            `json:"annotations"`
		Meta        map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return call.Traits{}
	}
	t := call.Traits{Input: d.Input}
	if len(d.Output) > 0 && !bytes.Equal(d.Output, []byte("null")) {
		t.Output = d.Output
	}
	var hints struct {
		ReadOnly   bool `json:"readOnlyHint"`
		Idempotent bool `json:"idempotentHint"`
	}
	if json.Unmarshal(d.Annotations, &hints) == nil {
		t.ReadOnly, t.Idempotent = hints.ReadOnly, hints.Idempotent
	}
	var said struct {
		Validates  bool   `json:"validates"`
		TimeoutMS  *int64 `json:"timeoutMs"`
		Concurrent int    `json:"concurrency"`
		Control    bool   `json:"control"`
	}
	if raw, ok := d.Meta[metaCall]; ok && json.Unmarshal(raw, &said) == nil {
		t.Validates, t.Control, t.MaxConcurrent = said.Validates, said.Control, max(0, said.Concurrent)
		if said.TimeoutMS != nil {
			t.OwnsDeadline = *said.TimeoutMS == 0
			const most = int64(24 * time.Hour / time.Millisecond)
			t.Timeout = time.Duration(min(max(0, *said.TimeoutMS), most)) * time.Millisecond
		}
	}
	return t
}
