package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A oneShot answers calls given as plain JSON, without JSON-RPC. Its methods
// return errCallFailed or an exitStatusError after a call whose answer says so,
// and other errors if an answer could not be printed.
type oneShot struct {
	*runner
	structured     bool // print the rows of tools that have them as objects
	text           bool // print only the text, for people
	interactive    bool // the input is a terminal
	stdout, stderr io.Writer
	program        string // its name, for error messages
}

// answerCallFlag answers --call with args, or with standard input if args is
// "-".
func (o *oneShot) answerCallFlag(ctx context.Context, args string, stdin io.Reader) error {
	if args != "-" {
		return o.answerText(ctx, []byte(args))
	}
	text, err := io.ReadAll(io.LimitReader(stdin, jsonrpc.MaxLine+1))
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	return o.answerText(ctx, text)
}

// answerText answers text, which should be one JSON value, and returns the error of
// answerJSON. For other or too long text it prints an error answer, and returns the error of
// printInvalidInput.
func (o *oneShot) answerText(ctx context.Context, text []byte) error {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if len(text) > jsonrpc.MaxLine {
		return o.printInvalidInput(fmt.Errorf("more than %d bytes", jsonrpc.MaxLine))
	}
	if err := jsonrpc.Valid(text); err != nil {
		return o.printInvalidInput(err)
	}
	return o.answerJSON(ctx, text)
}

// answerStream answers each JSON object of the input in order, as soon as it is
// complete. After the last it returns the last error of a failed call.
func (o *oneShot) answerStream(ctx context.Context, in io.Reader) error {
	dec := json.NewDecoder(in)
	var failed error
	for n := 0; ; n++ {
		var value json.RawMessage
		err := dec.Decode(&value)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return failed
		case err != nil:
			return o.printInvalidInput(err)
		}
		if err := jsonrpc.Valid(value); err != nil {
			return o.printInvalidInput(err)
		}
		if err := o.answerJSON(ctx, value); err != nil {
			failed = err
			var status exitStatusError
			if !errors.Is(err, errCallFailed) && !errors.As(err, &status) {
				return err
			}
		}
	}
}

// answerJSON runs the call in value, valid JSON, and prints its answer. null
// means a call without arguments. For a value that is not an object (INVALID_INPUT), and
// for an unknown tool (TOOL_NOT_FOUND), it prints an error answer. Its errors are those of
// printResult.
func (o *oneShot) answerJSON(ctx context.Context, value json.RawMessage) error {
	if value[0] != '{' && string(value) != "null" {
		return o.printInvalidInput(errors.New("it is a JSON value of another type"))
	}
	tool, args, named := o.parseCall(value)
	if tool == nil {
		return o.printResult(named, errorResult(toolerr.New(toolerr.ToolNotFound,
			"no tool %s, only %s", jsonrpc.MemberOf(value, "name"), strings.Join(o.tools.Names(), ", "))))
	}
	return o.printResult(named, o.runWithGrace(ctx, tool, args))
}

// parseCall returns the tool and its arguments. value is either the first tool's
// arguments, or an object {"name": …, "params": {…}}; named is true for the second. For
// an unknown name with params, t is nil.
func (o *oneShot) parseCall(value json.RawMessage) (t *Tool, args json.RawMessage, named bool) {
	first := o.tools.All()[0]
	members, err := jsonrpc.Members(value)
	if err != nil {
		return first, value, false // the tool's own check reports it
	}
	var name string
	params := json.RawMessage("{}")
	found := 0
	for _, m := range members {
		switch m.Name {
		case "name":
			if json.Unmarshal(m.Value, &name) == nil {
				found++
			}
		case "params", "arguments":
			params, named = m.Value, true
			found++
		}
	}
	if name == "" || found != len(members) || found > 2 {
		return first, value, false
	}
	t, ok := o.tools.ByName(name)
	if !named && !ok {
		return first, value, false // an argument called name
	}
	if !ok {
		return nil, nil, true
	}
	return t, params, true
}

// runWithGrace runs a call. After ctx has ended, it waits at most
// wire.DefaultGrace for the tool and then returns the error CANCELLED.
func (o *oneShot) runWithGrace(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
	done := make(chan *CallResult, 1)
	go func() { done <- o.run(ctx, t, args) }()
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
	}
	select {
	case res := <-done:
		return res
	case <-time.After(wire.DefaultGrace):
		return errorResult(toolerr.New(toolerr.Cancelled, "%s was stopped: %w", t.Name(), context.Cause(ctx)))
	}
}
