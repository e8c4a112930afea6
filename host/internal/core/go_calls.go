package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// GoEntryPoint is the entry point, in call.Caller, of calls that this program makes.
const GoEntryPoint = "go"

// Get returns the tool with a served name; false if no server has it. If the name is
// unknown, it starts the servers that probably have it, then all others, and waits for
// their lists until ctx ends.
func (a *App) Get(ctx context.Context, name string) (*call.Tool, bool) {
	return a.Catalog.Lookup(ctx, name)
}

// List returns all served tools in the order of the configuration. It starts servers whose
// tools are not known yet, and waits for them until ctx ends.
func (a *App) List(ctx context.Context) []*call.Tool { return a.Catalog.Snapshot(ctx).Tools() }

// ListErrors returns the errors of lists of tools, resources, templates or prompts that
// could not be read: of one server, or of all if server is "".
func (a *App) ListErrors(server string) []error {
	var errs []error
	for _, err := range a.Catalog.Errors() {
		var failed *catalog.ServerError
		if errors.As(err, &failed) && (server == "" || failed.Server == server) {
			errs = append(errs, err)
		}
	}
	return errs
}

// Call calls a tool through all stages. args is encoded as JSON and must give an object,
// or is nil. If the tool reports an error, Call returns a *FailedError together with the answer.
// toolerr.CodeOf gives the code of other errors.
func (a *App) Call(ctx context.Context, name string, args any) (*Answer, error) {
	raw := json.RawMessage(`{}`)
	if args != nil {
		var err error
		if raw, err = jsonrpc.Marshal(args); err != nil {
			return nil, toolerr.New(toolerr.InvalidParams, "the arguments of %s cannot be sent as JSON: %w", name, err)
		}
	}
	t, ok := a.Catalog.View().Lookup(ctx, name)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q; List returns the tools", name)
	}
	res, err := a.call(ctx, t, raw)
	if err != nil {
		return nil, err
	}
	answer, err := answerOf(name, res.Raw)
	if err == nil && answer.IsError {
		err = &FailedError{Tool: name, Answer: answer}
	}
	return answer, err
}

// Session returns the tools of one server, or of all servers if server is "", under their
// served names. Calls pass all stages. See mcpkit.Import.
func (a *App) Session(server string) mcpkit.Session { return goSession{a, server} }

// goSession gives Go code the tools of one server, or of all servers if server is "".
type goSession struct {
	app    *App
	server string
}

// ListTools returns the definitions of the tools. It returns NOT_FOUND for an unknown
// server, and the error of a server that failed if there is no tool at all.
func (s goSession) ListTools(ctx context.Context) ([]json.RawMessage, error) {
	tools := s.app.List
	if s.server != "" {
		if _, ok := s.app.snapshot.Load().byName[s.server]; !ok {
			return nil, toolerr.New(toolerr.NotFound, "no server %q", s.server)
		}
		if err := s.app.Catalog.RefreshNow(ctx, s.server); err != nil {
			return nil, err
		}
		tools = func(context.Context) []*call.Tool { return s.app.Catalog.KnownSnapshot().Tools() }
	}
	var all []json.RawMessage
	for _, t := range tools(ctx) {
		if s.server == "" || t.Server == s.server {
			all = append(all, t.Definition)
		}
	}
	if errs := s.app.ListErrors(s.server); len(all) == 0 && len(errs) > 0 {
		return nil, errs[0]
	}
	return all, nil
}

// CallTool calls a tool by its served name and returns the whole result. It returns
// TOOL_NOT_FOUND if the server does not have it.
func (s goSession) CallTool(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	t, ok := s.app.Catalog.View().Lookup(ctx, name)
	if !ok || s.server != "" && t.Server != s.server {
		return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q of server %q", name, s.server)
	}
	res, err := s.app.call(ctx, t, args)
	if err != nil {
		return nil, err
	}
	return res.Raw, nil
}

// call makes a call of t for this program through the whole pipeline. Nested calls end
// with it.
func (a *App) call(ctx context.Context, t *call.Tool, args json.RawMessage) (*call.Result, error) {
	params := append(append(jsonrpc.AppendString([]byte(`{"name":`), t.Name), `,"arguments":`...), args...)
	return a.Handler(ctx, &call.Request{Tool: t, Params: append(params, '}'), Caller: call.Caller{EntryPoint: GoEntryPoint, ID: GoEntryPoint}})
}

// An Answer is the result of a call.
type Answer struct {
	Text       string          // the text contents, joined by line ends
	Structured json.RawMessage // structuredContent; nil if none exists
	Details    json.RawMessage // _meta["toolroom/result"], an object; nil if none exists
	Code       toolerr.Code    // the error code that the tool gives; "" if it gives none
	IsError    bool
	Raw        json.RawMessage // the whole result as the tool sent it
}

// answerOf returns a result as an Answer, its texts joined by newlines. It returns
// RESULT_INVALID for a malformed result.
func answerOf(tool string, raw json.RawMessage) (*Answer, error) {
	var r struct {
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
		Content    []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, toolerr.New(toolerr.ResultInvalid, "the result of %s is malformed: %w", tool, err)
	}
	var texts []string
	for _, c := range r.Content {
		if c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	res := &call.Result{Raw: raw}
	return &Answer{
		Text: strings.Join(texts, "\n"), Structured: r.Structured, Details: res.Details(), Code: res.Code(), IsError: r.IsError, Raw: raw,
	}, nil
}

// Decode stores the structured content in the value that v points to. Without structured
// content it decodes the text, which must be JSON. The error has the code RESULT_INVALID.
func (a *Answer) Decode(v any) error {
	raw := a.Structured
	if raw == nil {
		raw = json.RawMessage(a.Text)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return toolerr.New(toolerr.ResultInvalid, "the result is not of the expected type: %w", err)
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
