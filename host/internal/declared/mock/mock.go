// Package mock implements tools with a fixed result, or with a template that the
// arguments fill.
//
// A template is Go's text/template over the arguments: {{.city}}, {{if …}}, {{range
// …}}. A printed text is escaped for a JSON string, so that {"city":"{{.city}}"} is
// valid for every city. Numbers, booleans, lists and objects are printed as JSON, and
// {{json .city}} prints any value as JSON; names in {{range $name, $value := .object}}
// are escaped, too. If the template uses an argument that the call lacks, or if the
// result is not JSON, the call fails.
package mock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config is the declaration of one tool, with Result or Template.
type Config struct {
	Result   json.RawMessage
	Template string
	Parts    []json.RawMessage // MCP content items before the result
}

// Validate returns an error that begins with the name of the wrong field.
func (c Config) Validate() error {
	_, err := c.parse()
	return err
}

// parse checks the settings and returns the prepared template, nil for a fixed result.
// Its error begins with the name of the wrong field.
func (c Config) parse() (*template.Template, error) {
	switch {
	case c.Result == nil && c.Template == "":
		return nil, errors.New("mock_result: is missing; give it, or a mock_template")
	case c.Result != nil && c.Template != "":
		return nil, errors.New("mock_template: mock_result is also given; leave one out")
	case c.Template == "":
		if err := jsonrpc.Valid(c.Result); err != nil {
			return nil, fmt.Errorf("mock_result: %w", err)
		}
		return nil, nil
	}
	t, err := template.New("").Option("missingkey=error").Funcs(functions()).Parse(c.Template)
	if err != nil {
		return nil, fmt.Errorf("mock_template: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, one := range t.Templates() {
		if one.Tree == nil {
			continue
		}
		if err := prepareTemplate(one.Root); err != nil {
			return nil, fmt.Errorf("mock_template: %w", err)
		}
	}
	return t, nil
}

// prepareTemplate inserts nodes into a template: each round of a loop writes at least
// an empty text, so that an endless loop is detected, and the names of members in a
// loop are escaped as texts.
func prepareTemplate(n *parse.ListNode) error {
	if n == nil {
		return nil
	}
	for _, one := range n.Nodes {
		var branch *parse.BranchNode
		switch one := one.(type) {
		case *parse.RangeNode:
			branch = &one.BranchNode
		case *parse.IfNode:
			branch = &one.BranchNode
		case *parse.WithNode:
			branch = &one.BranchNode
		default:
			continue
		}
		if err := errors.Join(prepareTemplate(branch.List), prepareTemplate(branch.ElseList)); err != nil {
			return err
		}
		if decl := branch.Pipe.Decl; branch.NodeType == parse.NodeRange && len(decl) == 2 {
			named, err := escapeNameNode(decl[0].Ident[0])
			if err != nil {
				return err
			}
			branch.List.Nodes = slices.Insert(branch.List.Nodes, 1, named)
		}
	}
	n.Nodes = slices.Insert(n.Nodes, 0, parse.Node(&parse.TextNode{NodeType: parse.NodeText}))
	return nil
}

// escapeNameNode returns the node {{$v = name $v}} for the variable $v, which makes the
// name of a member a text.
func escapeNameNode(variable string) (parse.Node, error) {
	t, err := template.New("").Funcs(functions()).Parse("{{" + variable + " := 0}}{{" + variable + " = name " + variable + "}}")
	if err != nil {
		return nil, err
	}
	return t.Root.Nodes[1], nil
}

// functions returns the functions that templates can call: json, and name for
// prepareTemplate.
func functions() template.FuncMap {
	return template.FuncMap{"json": asJSON, "name": func(v any) any {
		if name, ok := v.(string); ok {
			return text(name)
		}
		return v
	}}
}

// Uses returns the names of the arguments that the template uses, sorted; none for a
// fixed result.
func (c Config) Uses() []string {
	t, err := c.parse()
	if err != nil || t == nil {
		return nil
	}
	names := map[string]bool{}
	var walk func(n parse.Node, top bool)
	walk = func(n parse.Node, top bool) {
		switch n := n.(type) {
		case *parse.ListNode:
			if n != nil {
				for _, one := range n.Nodes {
					walk(one, top)
				}
			}
		case *parse.ActionNode:
			walk(n.Pipe, top)
		case *parse.PipeNode:
			for _, one := range n.Cmds {
				walk(one, top)
			}
		case *parse.CommandNode:
			for _, one := range n.Args {
				walk(one, top)
			}
		case *parse.FieldNode:
			if top {
				names[n.Ident[0]] = true
			}
		case *parse.VariableNode:
			if n.Ident[0] == "$" && len(n.Ident) > 1 {
				names[n.Ident[1]] = true
			}
		case *parse.IfNode:
			walk(n.Pipe, top)
			walk(n.List, top)
			walk(n.ElseList, top)
		case *parse.RangeNode:
			walk(n.Pipe, top)
			walk(n.List, false) // the dot has another value in it
			walk(n.ElseList, top)
		case *parse.WithNode:
			walk(n.Pipe, top)
			walk(n.List, false)
			walk(n.ElseList, top)
		}
	}
	walk(t.Root, true)
	return slices.Sorted(maps.Keys(names))
}

// New returns the handler, which answers each call with the fixed result or the filled
// template. It fails if Validate fails.
func New(c Config, shape executor.Shape) (call.Handler, error) {
	t, err := c.parse()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		value := c.Result
		if t != nil {
			filled, err := executeTemplate(ctx, t, req)
			if err != nil {
				return nil, err
			}
			value = filled
		}
		return shape.Result(req.Tool.Name, value, c.Parts...)
	}, nil
}

// missingKeyPattern matches the template error for an argument that the call lacks (1).
var missingKeyPattern = lazyregexp.New(`map has no entry for key "(.*)"$`)

// executeTemplate returns the output of the template for the arguments of a call. It
// returns MISSING_PARAMETER for an argument that is missing, a *call.ExecutionError if
// the template fails, and a *call.ValidationError if the output is not JSON.
func executeTemplate(ctx context.Context, t *template.Template, req *call.Request) (json.RawMessage, error) {
	raw, err := req.Arguments()
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var arguments map[string]any
	if err := d.Decode(&arguments); err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "arguments: %w", err)
	}
	out := &limitedWriter{ctx: ctx}
	if err := t.Execute(out, templateValue(arguments)); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if m := missingKeyPattern().FindStringSubmatch(err.Error()); m != nil {
			return nil, executor.Missing(req.Tool.Name, m[1], "mock_template")
		}
		return nil, &call.ExecutionError{
			Tool: req.Tool.Name, Phase: call.PhaseExecute, Message: "mock_template of " + req.Tool.Name + " cannot be filled",
			Cause: toolerr.New(toolerr.ExecutionError, "%w", err),
		}
	}
	if err := jsonrpc.Valid(bytes.TrimSpace(out.text)); err != nil {
		return nil, executor.Invalid(req.Tool.Name, "the output of mock_template is not JSON: %v; put text in quotes, or use {{json .name}}", err)
	}
	return out.text, nil
}

// limitedWriter limits the output of a template, and ends the template when the call
// has ended.
type limitedWriter struct {
	ctx  context.Context //nolint:containedctx // of the one call
	text []byte
}

// Write collects text. It returns an error above executor.MaxResult, or when ctx has
// ended.
func (b *limitedWriter) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if len(b.text)+len(p) > executor.MaxResult {
		return 0, fmt.Errorf("the result is larger than %d MiB", executor.MaxResult>>20)
	}
	b.text = append(b.text, p...)
	return len(p), nil
}

// The values of a template, which print as JSON.
type (
	text   string
	null   struct{}
	list   []any
	object map[string]any
	digits string
)

// String returns the content of the JSON string, escaped, without quotes.
func (t text) String() string {
	quoted := jsonrpc.AppendString(nil, string(t))
	return string(quoted[1 : len(quoted)-1])
}

// String returns null.
func (null) String() string { return "null" }

// String returns the list as JSON.
func (l list) String() string { return asJSON(l) }

// String returns the object as JSON.
func (o object) String() string { return asJSON(o) }

// MarshalJSON returns null.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// MarshalJSON returns the number as it was written.
func (d digits) MarshalJSON() ([]byte, error) { return []byte(d), nil }

// asJSON returns any value as JSON.
func asJSON(v any) string {
	raw, err := jsonrpc.Marshal(v)
	if err != nil {
		return "null" // the values come from JSON, so this cannot happen
	}
	return string(raw)
}

// isExact reports whether the float f, parsed from written, prints the number as
// precisely as it was written.
func isExact(f float64, written string) bool {
	if strings.ContainsAny(written, "eE") {
		return len(written) <= 17 // floats distinguish numbers of that length
	}
	return strconv.FormatFloat(f, 'f', -1, 64) == strings.TrimSuffix(strings.TrimRight(written, "0"), ".")
}

// templateValue converts decoded JSON into values that templates print as JSON.
func templateValue(v any) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case nil:
		return null{}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") && isExact(f, v.String()) {
			return f
		}
		return digits(v) // larger or more precise than Go's numbers
	case []any:
		out := make(list, len(v))
		for i, item := range v {
			out[i] = templateValue(item)
		}
		return out
	case map[string]any:
		out := make(object, len(v))
		for key, item := range v {
			out[key] = templateValue(item)
		}
		return out
	}
	return v
}
