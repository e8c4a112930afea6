package mcpkit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// errCallFailed reports a failed call whose failure has been printed.
var errCallFailed = errors.New("the call failed")

// A oneShot answers calls given as plain JSON, without JSON-RPC.
type oneShot struct {
	*runner
	structured  bool // rows as objects, where the tool has them
	text        bool // for people: only the text
	interactive bool // the input is typed at a terminal
	out, errs   io.Writer
	program     string
}

// exitStatus is the status of a failed command that a call ran.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// call answers --call: args, or standard input if args is "-".
func (o *oneShot) call(ctx context.Context, args string, stdin io.Reader) error {
	if args != "-" {
		return o.answerText(ctx, []byte(args))
	}
	text, err := io.ReadAll(io.LimitReader(stdin, jsonrpc.MaxLine+1))
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	return o.answerText(ctx, text)
}

// answerText answers a text that should be one JSON object.
func (o *oneShot) answerText(ctx context.Context, text []byte) error {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if len(text) > jsonrpc.MaxLine {
		return o.printInvalid(fmt.Errorf("more than %d bytes", jsonrpc.MaxLine))
	}
	if err := jsonrpc.Valid(text); err != nil {
		return o.printInvalid(err)
	}
	return o.answer(ctx, text)
}

// stream answers each object of the input in order, as soon as it is complete.
func (o *oneShot) stream(ctx context.Context, in io.Reader) error {
	dec := json.NewDecoder(in)
	var failed error
	for n := 0; ; n++ {
		var value json.RawMessage
		err := dec.Decode(&value)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return failed
		case err != nil:
			return o.printInvalid(err)
		}
		if err := jsonrpc.Valid(value); err != nil {
			return o.printInvalid(err)
		}
		if err := o.answer(ctx, value); err != nil {
			failed = err
			var status exitStatus
			if !errors.Is(err, errCallFailed) && !errors.As(err, &status) {
				return err
			}
		}
	}
}

// printInvalid answers input that is not a JSON object.
func (o *oneShot) printInvalid(err error) error {
	return o.print(false, errorResult(toolerr.New(toolerr.InvalidInput,
		"the input is not a JSON object (%v); send the arguments, such as {\"path\":\".\"}, or {\"name\":\"%s\",\"params\":{…}}",
		err, o.tools.Names()[0])))
}

// answer carries out one call. null means no arguments.
func (o *oneShot) answer(ctx context.Context, value json.RawMessage) error {
	if value[0] != '{' && string(value) != "null" {
		return o.printInvalid(errors.New("it is a JSON value of another type"))
	}
	tool, args, named := o.parseCall(value)
	if tool == nil {
		return o.print(named, errorResult(toolerr.New(toolerr.ToolNotFound,
			"no tool %s, only %s", jsonrpc.MemberOf(value, "name"), strings.Join(o.tools.Names(), ", "))))
	}
	return o.print(named, o.runBounded(ctx, tool, args))
}

// parseCall returns the tool and its arguments. value is either the first
// tool's arguments or {"name": …, "params": {…}}; named reports the latter
// form. t is nil for an unknown name.
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

// runBounded is run, except that it does not wait longer than wire.DefaultGrace for
// a tool that keeps running after ctx has ended.
func (o *oneShot) runBounded(ctx context.Context, t *Tool, args json.RawMessage) *CallResult {
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

// print writes one answer, as text or in the form of JSON that the call used.
func (o *oneShot) print(named bool, res *CallResult) error {
	if o.text {
		return o.printText(res)
	}
	var answer any
	var line json.RawMessage
	var err error
	switch {
	case res.IsError && named:
		answer = struct {
			Error any `json:"error"`
		}{oneShotError{Message: res.Text, Code: res.Code}}
	case res.IsError:
		answer = oneShotFlatError{Error: res.Text, Code: res.Code}
	case o.structured && res.Rows != nil:
		answer = struct {
			Results any `json:"results"`
		}{rows(res.Rows)}
	case res.Notes == "" && len(res.Images) == 0: // most answers, and the long ones
		line = append(jsonrpc.AppendString([]byte(`{"result":`), res.Text), '}')
	default:
		answer = oneShotResult{Result: res.Text, Notes: res.Notes, Images: images(res.Images)}
	}
	if line == nil {
		if line, err = jsonrpc.Marshal(answer); err != nil {
			return fmt.Errorf("encoding the answer: %w", err)
		}
	}
	if _, err := o.out.Write(append(line, '\n')); err != nil {
		return err
	}
	if res.IsError {
		return errCallFailed
	}
	return nil
}

// printText writes a result's text to the output; errors and notes about images
// go to standard error.
func (o *oneShot) printText(res *CallResult) error {
	if res.IsError {
		if _, err := fmt.Fprintf(o.errs, "%s: %s\n", o.program, strings.TrimSuffix(res.Text, "\n")); err != nil {
			return err
		}
		return errCallFailed
	}
	if _, err := io.WriteString(o.out, strings.TrimSuffix(res.Text, "\n")+"\n"); err != nil {
		return err
	}
	if n := len(res.Images); n > 0 {
		fmt.Fprintf(o.errs, "%s: %d images are not shown; without --text they are in the JSON\n", o.program, n)
	}
	if res.Notes != "" {
		fmt.Fprintln(o.errs, res.Notes)
	}
	if res.ExitStatus != 0 {
		return exitStatus(res.ExitStatus)
	}
	return nil
}

type oneShotError struct {
	Message string       `json:"message"`
	Code    toolerr.Code `json:"code"`
}

type oneShotFlatError struct {
	Error string       `json:"error"`
	Code  toolerr.Code `json:"code"`
}

type oneShotResult struct {
	Result string         `json:"result"`
	Notes  string         `json:"notes,omitempty"` // where the result is data
	Images []oneShotImage `json:"images,omitempty"`
}

type oneShotImage struct {
	MIME string `json:"mimeType"`
	Data string `json:"data"` // base64
}

func images(list []Image) []oneShotImage {
	var out []oneShotImage
	for _, img := range list {
		out = append(out, oneShotImage{MIME: img.MIME, Data: base64.StdEncoding.EncodeToString(img.Data)})
	}
	return out
}

// rows returns the rows to encode: an empty list instead of a nil one.
func rows(list any) any {
	if make, ok := list.(func() any); ok {
		list = make()
	}
	if v := reflect.ValueOf(list); v.Kind() == reflect.Slice && v.IsNil() {
		return []struct{}{}
	}
	return list
}
