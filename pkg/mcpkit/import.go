package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Session gives a program access to a server's tools: those of a running
// server or host, or those of another Session that it decorates. A decorator
// embeds that Session and overrides a method.
type Session interface {
	// ListTools returns the tools' definitions, as in tools/list.
	ListTools(ctx context.Context) ([]json.RawMessage, error)
	// CallTool returns the result of tools/call. It returns an error if the
	// call could not be made; a tool's own failure is a result with isError.
	CallTool(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
}

// A ToolOverride holds the parts of another server's tool that Import can
// change.
type ToolOverride struct {
	Name        string
	Title       string
	Description string
	Hints       Hints           // if one is changed, all four are sent
	Input       json.RawMessage // the input schema
}

// Import returns the tools of a session as tools of this program, which can
// call them, wrap them with middleware and serve them. Arguments are passed on
// unchanged for the session's server to check, and its results are returned
// unchanged. change, unless nil, is called with each definition: it may change
// it, and reports whether to import the tool. Progress is not passed on. Import
// fails if the list cannot be read or a definition is malformed.
func Import(ctx context.Context, s Session, change func(*ToolOverride) bool) ([]*Tool, error) {
	list, err := s.ListTools(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the session's tools: %w", err)
	}
	var tools []*Tool
	for _, raw := range list {
		t, err := importTool(s, raw, change)
		if err != nil {
			return nil, err
		}
		if t != nil {
			tools = append(tools, t)
		}
	}
	return tools, nil
}

// importSource says where an imported tool comes from.
type importSource struct {
	session       Session
	remoteName    string          // its name on the session's server
	input, output json.RawMessage // schemas as received or overridden; output may be nil
}

// receivedDefinition is the part of a received definition that importTool
// reads.
type receivedDefinition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
	Hints       struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  bool  `json:"idempotentHint"`
		OpenWorld   *bool `json:"openWorldHint"`
	} `json:"annotations"`
	Meta map[string]json.RawMessage `json:"_meta"`
}

// importTool makes a tool from a received definition. It returns nil without an
// error if change rejects the tool, and PROTOCOL_ERROR for a malformed definition.
func importTool(s Session, raw json.RawMessage, change func(*ToolOverride) bool) (*Tool, error) {
	var d receivedDefinition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, toolerr.New(toolerr.ProtocolError, "a definition of the session's is malformed: %w", err)
	}
	trueIfMissing := func(b *bool) bool { return b == nil || *b } // the worst case, as the specification says
	was := ToolOverride{Name: d.Name, Title: d.Title, Description: d.Description, Input: d.Input, Hints: Hints{
		ReadOnly: d.Hints.ReadOnly, Destructive: !d.Hints.ReadOnly && trueIfMissing(d.Hints.Destructive),
		Idempotent: d.Hints.Idempotent, OpenWorld: trueIfMissing(d.Hints.OpenWorld),
	}}
	now := was
	if change != nil && !change(&now) {
		return nil, nil
	}
	t := &Tool{
		def:        Def{Name: now.Name, Title: now.Title, Description: now.Description, Hints: now.Hints},
		definition: raw, remote: &importSource{session: s, remoteName: d.Name, input: now.Input, output: d.Output},
	}
	var callSettings struct {
		TimeoutMS  int64 `json:"timeoutMs"`
		Concurrent int   `json:"concurrency"`
		Control    bool  `json:"control"`
	}
	if meta, ok := d.Meta[metaKeyCallSettings]; ok && json.Unmarshal(meta, &callSettings) == nil {
		t.def.Timeout, t.def.MaxConcurrent, t.def.Control = time.Duration(callSettings.TimeoutMS)*time.Millisecond, max(0, callSettings.Concurrent), callSettings.Control
	}
	for _, fault := range t.def.faults() {
		return nil, fmt.Errorf("tool %q: %w", d.Name, fault)
	}
	return t, t.rewriteDefinition(was, now)
}

// rewriteDefinition rewrites the members of the tool's definition that differ
// between was and now. All other bytes stay.
func (t *Tool) rewriteDefinition(was, now ToolOverride) error {
	set := func(name string, value any) error {
		raw, err := jsonrpc.Marshal(value)
		if err == nil {
			t.definition, err = jsonrpc.SetMember(t.definition, name, raw)
		}
		if err != nil {
			return fmt.Errorf("tool %q: its %s: %w", was.Name, name, err)
		}
		return nil
	}
	var err error
	for _, m := range []struct{ name, was, now string }{
		{"name", was.Name, now.Name}, {"title", was.Title, now.Title}, {"description", was.Description, now.Description},
	} {
		if m.was != m.now && err == nil {
			err = set(m.name, m.now)
		}
	}
	if !bytes.Equal(was.Input, now.Input) && err == nil {
		err = set("inputSchema", now.Input)
	}
	if h := now.Hints; was.Hints != h && err == nil {
		err = set("annotations", map[string]any{
			"title": now.Title, "readOnlyHint": h.ReadOnly, "destructiveHint": h.Destructive,
			"idempotentHint": h.Idempotent, "openWorldHint": h.OpenWorld,
		})
	}
	return err
}
