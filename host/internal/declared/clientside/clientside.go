// Package clientside implements tools that the caller runs itself: the host only
// describes them.
//
// The answer to a call is a *call.PendingError with Reason as its reason. A caller
// that can run the tool (the HTTP API, an agent, a Go program) takes the tool and the
// arguments from it and returns the result. An MCP client is asked for the result by
// elicitation if it supports that; otherwise the error says what to do.
package clientside

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Reason is the reason of a call that the caller must run itself.
const Reason = "client_tool"

// Config is the declaration of one tool.
type Config struct {
	Message string          // question to the user; "": derived from the description
	Output  json.RawMessage // schema of the result; nil: any text
}

// Validate returns nil: all values are valid.
func (c Config) Validate() error { return nil }

// New returns the handler of a tool that the caller's client runs: it asks the client for
// the result, or returns a *call.PendingError if the client cannot be asked. The error is
// always nil.
func New(c Config, shape executor.Shape) (call.Handler, error) {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		arguments, err := req.Arguments()
		if err != nil {
			return nil, err
		}
		if forms, _ := req.Caller.Elicitation(); forms && req.Ask != nil {
			return c.ask(ctx, req, arguments, shape)
		}
		return nil, &call.PendingError{Pending: call.Pending{
			Reason: Reason, Tool: req.Tool.Name, Args: arguments,
			Message: "this tool runs in the client, which cannot be asked for its result (it does not support elicitation): run the tool with these arguments, and continue with its result",
		}}
	}, nil
}

// ask asks the caller's client for the result by a form. It returns an error result if
// the user does not accept, a *call.ExecutionError if the client cannot be asked, and a
// *call.ValidationError for a malformed answer.
func (c Config) ask(ctx context.Context, req *call.Request, arguments json.RawMessage, shape executor.Shape) (*call.Result, error) {
	message := c.Message
	if message == "" {
		message = fmt.Sprintf("Your client must run the tool %s. Give its result for these arguments:", req.Tool.Name)
	}
	schema, direct := formSchema(c.Output)
	params := jsonrpc.AppendString([]byte(`{"message":`), message+"\n\n"+string(arguments))
	params = append(append(append(params, `,"requestedSchema":`...), schema...), '}')
	raw, err := req.Ask(ctx, "elicitation/create", params)
	if err != nil {
		return nil, &call.ExecutionError{Tool: req.Tool.Name, Phase: call.PhaseExecute, Message: "the client could not be asked for the result of " + req.Tool.Name, Cause: withCode(err)}
	}
	var answer struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, executor.Invalid(req.Tool.Name, "the client's answer is malformed: %v", err)
	}
	if answer.Action != "accept" {
		return executor.Failed(fmt.Sprintf("%s was not executed: the user of the client answered %s", req.Tool.Name, answer.Action)), nil
	}
	if direct {
		return shape.Result(req.Tool.Name, answer.Content)
	}
	var given struct {
		Result string `json:"result"`
	}
	if err := json.Unmarshal(answer.Content, &given); err != nil {
		return nil, executor.Invalid(req.Tool.Name, "the client's answer is malformed: %v", err)
	}
	if jsonrpc.Valid([]byte(given.Result)) == nil {
		return shape.Result(req.Tool.Name, json.RawMessage(given.Result))
	}
	return shape.Text(req.Tool.Name, given.Result)
}

// withCode adds a code to an error that the client returned.
func withCode(err error) error {
	return toolerr.New(toolerr.ExecutionError, "%w", err)
}

// formSchema returns the schema of the question: the tool's output schema if that is
// flat, as forms must be (direct), otherwise one with a single text.
func formSchema(output json.RawMessage) (schema json.RawMessage, direct bool) {
	one := json.RawMessage(`{"type":"object","properties":{"result":{"type":"string","title":"Result"}},"required":["result"]}`)
	var s struct {
		Type       string `json:"type"`
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if output == nil || json.Unmarshal(output, &s) != nil || s.Type != "object" || len(s.Properties) == 0 {
		return one, false
	}
	for _, p := range s.Properties {
		switch p.Type {
		case "string", "number", "integer", "boolean":
		default:
			return one, false
		}
	}
	return output, true
}
