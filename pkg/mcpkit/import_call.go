package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// callRemote calls the imported tool through its session. A failed call or a malformed
// result becomes a result with an error.
func (t *Tool) callRemote(ctx context.Context, args json.RawMessage) *CallResult {
	if len(bytes.TrimSpace(args)) == 0 || string(args) == "null" {
		args = json.RawMessage(`{}`)
	}
	raw, err := t.remote.session.CallTool(ctx, t.remote.remoteName, args)
	if err != nil {
		return t.ErrorResult(t.withCode(ctx, err))
	}
	res, err := parseRemoteResult(raw)
	if err != nil {
		return t.ErrorResult(toolerr.New(toolerr.ResultInvalid, "the result of %s is malformed: %w", t.Name(), err))
	}
	return res
}

// parseRemoteResult parses the parts of a received result that middleware uses,
// and keeps the result itself. It drops members that belong to the message instead of
// the result. An error without a code gets EXECUTION_ERROR. It fails for malformed JSON.
func parseRemoteResult(raw json.RawMessage) (*CallResult, error) {
	members, err := jsonrpc.Members(raw)
	if err != nil {
		return nil, err
	}
	res := &CallResult{rawResult: json.RawMessage("{")}
	hasContent := false
	for _, m := range members {
		switch m.Name {
		case "resultType":
			continue
		case "_meta":
			if m.Value, err = parseRemoteMeta(m.Value, res); err != nil {
				return nil, err
			}
			if m.Value == nil {
				continue
			}
		case "content":
			hasContent = true
			var content []struct {
				Text string `json:"text"`
			}
			if err := json.Unmarshal(m.Value, &content); err != nil {
				return nil, err
			}
			var texts []string
			for _, c := range content {
				if c.Text != "" {
					texts = append(texts, c.Text)
				}
			}
			res.Text = strings.Join(texts, "\n")
		case "structuredContent":
			res.Structured = m.Value
		case "isError":
			res.IsError = string(m.Value) == "true"
		}
		if len(res.rawResult) > 1 {
			res.rawResult = append(res.rawResult, ',')
		}
		res.rawResult = append(append(jsonrpc.AppendString(res.rawResult, m.Name), ':'), m.Value...)
	}
	if !hasContent {
		if len(res.rawResult) > 1 {
			res.rawResult = append(res.rawResult, ',')
		}
		res.rawResult = append(res.rawResult, `"content":[]`...)
	}
	res.rawResult = append(res.rawResult, '}')
	if res.IsError {
		if res.Code == "" {
			res.Code = toolerr.ExecutionError
		}
		res.Err = toolerr.New(res.Code, "%s", res.Text)
	} else {
		res.Code = ""
	}
	return res, nil
}

// parseRemoteMeta reads the code and the details in a received result's _meta
// into res. It returns _meta without the protocol's keys, which belong to the
// message; nil if no other is left.
func parseRemoteMeta(raw json.RawMessage, res *CallResult) (meta json.RawMessage, err error) {
	members, err := jsonrpc.Members(raw)
	if err != nil {
		return nil, err
	}
	out := json.RawMessage("{")
	for _, m := range members {
		if strings.HasPrefix(m.Name, "io.modelcontextprotocol/") {
			continue
		}
		switch m.Name {
		case metaKeyCode:
			var code string
			if err := json.Unmarshal(m.Value, &code); err == nil {
				res.Code = toolerr.Code(code)
			}
		case metaKeyDetails:
			res.Details = m.Value
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonrpc.AppendString(out, m.Name), ':'), m.Value...)
	}
	if len(out) == 1 {
		return nil, nil
	}
	return append(out, '}'), nil
}
