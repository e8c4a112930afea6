package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Call calls a tool by the name it is served under. args is encoded as JSON and must give an
// object; nil is an object without members.
//
// If the tool itself reports an error, the error is a *FailedError and the answer is returned, too.
// toolerr.CodeOf gives the code of every other error, among them TOOL_NOT_FOUND,
// INVALID_PARAMS (the arguments do not match the tool's schema), POLICY_DENIED,
// PENDING_APPROVAL, TIMEOUT and SERVER_OFFLINE.
func (h *Host) Call(ctx context.Context, name string, args any) (*Answer, error) {
	encoded := json.RawMessage(`{}`)
	if args != nil {
		var err error
		if encoded, err = jsonrpc.Marshal(args); err != nil {
			return nil, toolerr.New(toolerr.InvalidParams, "the arguments of %s cannot be encoded as JSON: %w", name, err)
		}
	}
	tool, ok := h.core.Get(ctx, name)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q; Tools lists the tools", name)
	}
	result, err := h.call(ctx, tool, encoded)
	if err != nil {
		return nil, err
	}
	answer, err := newAnswer(name, result)
	if err == nil && answer.IsError {
		err = &FailedError{Tool: name, Answer: answer}
	}
	return answer, err
}

// call calls a tool through all stages.
func (h *Host) call(ctx context.Context, tool *call.Tool, args json.RawMessage) (*call.Result, error) {
	params := append(append(jsonrpc.AppendString([]byte(`{"name":`), tool.Name), `,"arguments":`...), args...)
	return h.core.Handler(ctx, &call.Request{Tool: tool, Params: append(params, '}'), Caller: call.Caller{Door: core.Door, ID: core.Door}})
}

// Answer is the result of a call.
type Answer struct {
	Text       string          // the text contents, joined by line ends
	Structured json.RawMessage // structuredContent; nil if there is none
	Details    json.RawMessage // _meta["toolroom/result"], an object with counts, exit code and so on; nil if there is none
	Code       toolerr.Code    // the error code that the tool gives; "" if it gives none
	IsError    bool            // the tool reports an error, which Text describes
	Raw        json.RawMessage // the whole result as the tool sent it, with images and other contents
}

func newAnswer(tool string, result *call.Result) (*Answer, error) {
	var r struct {
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
		Content    []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(result.Raw, &r); err != nil {
		return nil, toolerr.New(toolerr.ResultInvalid, "the result of %s is malformed: %w", tool, err)
	}
	var texts []string
	for _, c := range r.Content {
		if c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	return &Answer{
		Text: strings.Join(texts, "\n"), Structured: r.Structured, Details: result.Details(), Code: result.Code(), IsError: r.IsError, Raw: result.Raw,
	}, nil
}

// Decode stores the structured content in the value that v points to. Without structured content
// it decodes the text, which must be JSON. The error has the code RESULT_INVALID.
func (a *Answer) Decode(v any) error {
	raw := a.Structured
	if raw == nil {
		raw = json.RawMessage(a.Text)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return toolerr.New(toolerr.ResultInvalid, "the result cannot be decoded into %T: %w", v, err)
	}
	return nil
}

// FailedError is the error of a call whose tool reports an error.
type FailedError struct {
	Tool   string
	Answer *Answer
}

// Error returns the text of the answer.
func (e *FailedError) Error() string {
	if e.Answer.Text == "" {
		return fmt.Sprintf("%s failed without an error text", e.Tool)
	}
	return e.Answer.Text
}

// Unwrap returns a toolerr.Error with the code that the tool gives, or EXECUTION_ERROR.
func (e *FailedError) Unwrap() error {
	return toolerr.New(cmp.Or(e.Answer.Code, toolerr.ExecutionError), "%s", e.Error())
}

// Session returns the tools of one server, or of all servers if server is "", as a
// mcpkit.Session: mcpkit.Import makes tools of it, which a program can rename, change
// and register. Calls pass all stages.
func (h *Host) Session(server string) mcpkit.Session { return session{h, server} }

type session struct {
	host   *Host
	server string // "": all servers
}

func (s session) ListTools(ctx context.Context) ([]json.RawMessage, error) {
	list := s.host.core.List
	if s.server != "" {
		servers := s.host.core.Servers()
		if !slices.ContainsFunc(servers, func(u *upstream.Server) bool { return u.Name() == s.server }) {
			return nil, toolerr.New(toolerr.NotFound, "no server %q", s.server)
		}
		if err := s.host.core.Catalog.Now(ctx, s.server); err != nil {
			return nil, err
		}
		list = func(context.Context) []*call.Tool { return s.host.core.Catalog.Known().Tools() }
	}
	var definitions []json.RawMessage
	for _, t := range list(ctx) {
		if s.server == "" || t.Server == s.server {
			definitions = append(definitions, t.Definition)
		}
	}
	if errs := s.host.failedServers(s.server); len(definitions) == 0 && len(errs) > 0 {
		return nil, errs[0]
	}
	return definitions, nil
}

func (s session) CallTool(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	tool, ok := s.host.core.Get(ctx, name)
	if !ok || s.server != "" && tool.Server != s.server {
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q of server %q", name, s.server)
	}
	result, err := s.host.call(ctx, tool, args)
	if err != nil {
		return nil, err
	}
	return result.Raw, nil
}
