package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// isName reports whether name has 1 to 64 characters, each an ASCII letter, a
// digit or in others: the names that every model API accepts. A regular
// expression would have to be compiled at every start.
func isName(name, others string) bool {
	return name != "" && len(name) <= 64 &&
		!strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r, others) })
}

func isNameRune(r rune, others string) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(others, r)
}

// NewTool makes a tool that returns text. A is the struct of its arguments (or
// a map); these tags of its fields make the input schema:
//
//	json:"name,omitempty"  the name; without omitempty (or omitzero, or a
//	                       pointer type) the argument is required
//	jsonschema:"text"      the description as it is; desc and description
//	                       are the same
//	enum:"a,b"             the values of a string, a number, or a list's items
//	default:"10"           given to the function where the caller says nothing;
//	                       lists as "a,b" or JSON, other composites as JSON;
//	                       false is not written to the schema
//	min:"1" max:"20"       bounds of a number or a duration, or of the length
//	                       of a string, list or map; a lower bound of 0 or 1
//	                       is checked and not written to the schema
//	alias:"old,other"      further names that are taken, with a note; @file,
//	                       @dir and other groups are in aliasGroups. Of every
//	                       name, camelCase is taken for snake_case as well. Two
//	                       arguments may share one if their JSON types differ
//	hidden:"true"          taken, but not in the schema: an optional argument
//	                       of other tools that the function translates
//	verbatim:"true"        of an optional string that is data: "null" and
//	                       "undefined" are text, not a way to say nothing
//	argv:"true"            of a string that is a shell command: a list of
//	                       words is taken for it, with a note
//	bare:"true"            of a list that is mostly one: a bare value is taken
//	                       for a list of one without a note
//
// A time.Duration is text like "30s" (a bare number means milliseconds and adds
// a note), []byte is base64, any is any JSON value; in it, whole numbers that a
// float64 would round arrive as json.Number. Embedded structs are flattened,
// and recursive types go to $defs. The error lists every fault of the
// definition and of the tags.
func NewTool[A any](d Def, fn func(ctx context.Context, args A) (*Result, error)) (*Tool, error) {
	t := &Tool{def: d}
	err := t.finish(reflect.TypeFor[A](), nil)
	if fn == nil {
		err = errors.Join(err, errors.New("no function"))
	}
	t.run = func(ctx context.Context, n *node) (*Result, error) {
		args, err := decodeArgs[A](t, n)
		if err != nil {
			return nil, err
		}
		return fn(ctx, args)
	}
	return t.withName(err)
}

// NewStructuredTool makes a tool that returns data: R becomes both
// structuredContent and the text, by its method String or else as JSON. An R
// that is not an object is sent as {"result": R}. Data cannot be cut: a result
// above the budget is the error TOO_LARGE.
func NewStructuredTool[A, R any](d Def, fn func(ctx context.Context, args A) (R, error)) (*Tool, error) {
	t := &Tool{def: d, data: true}
	output := reflect.TypeFor[R]()
	wrap := !isObject(output)
	if wrap {
		output = reflect.TypeFor[struct {
			Result R `json:"result"`
		}]()
	}
	err := t.finish(reflect.TypeFor[A](), output)
	if fn == nil {
		err = errors.Join(err, errors.New("no function"))
	}
	if d.Output != nil {
		err = errors.Join(err, errors.New("field Output is for NewTool: here the result's type says it"))
	}
	t.run = func(ctx context.Context, n *node) (*Result, error) {
		args, err := decodeArgs[A](t, n)
		if err != nil {
			return nil, err
		}
		r, err := fn(ctx, args)
		if err != nil {
			return nil, err
		}
		return renderData(r, wrap)
	}
	return t.withName(err)
}

// isObject reports whether t is encoded as a JSON object.
func isObject(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	b := builder{output: true}
	return b.specialSchema(t) == nil && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map)
}

func renderData(r any, wrap bool) (*Result, error) {
	v := reflect.ValueOf(r)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil
	}
	res := &Result{Meta: r}
	if wrap {
		res.Meta = map[string]any{"result": r}
	}
	if s, ok := r.(fmt.Stringer); ok {
		res.Text = s.String()
		return res, nil
	}
	text, err := jsonrpc.Marshal(r)
	if err != nil {
		return nil, toolerr.New(toolerr.ResultInvalid, "the result cannot be sent as JSON: %w", err)
	}
	res.Text = string(text)
	return res, nil
}

func (t *Tool) withName(err error) (*Tool, error) {
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.def.Name, err)
	}
	return t, nil
}

// finish checks the definition and makes the schemas. If output is nil,
// Def.Output gives the output type.
func (t *Tool) finish(input, output reflect.Type) error {
	t.def.Aliases = slices.Clone(t.def.Aliases)
	faults := t.def.faults()
	in, err := buildSchema(input, false)
	faults = append(faults, err)
	if in.kind != kindObject && in.kind != kindMap && err == nil {
		faults = append(faults, fmt.Errorf("arguments must be a struct or a map, not %s", input))
	}
	t.input = in
	if output == nil && t.def.Output != nil {
		output = reflect.TypeOf(t.def.Output)
	}
	if output != nil {
		t.output, err = outputSchema(output)
		faults = append(faults, err)
	}
	if t.def.Row != nil {
		t.row, err = buildSchema(reflect.TypeOf(t.def.Row), true)
		if err == nil && t.row.recursive() {
			err = errors.New("field Row cannot be a recursive type")
		}
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	t.definition, err = t.define()
	return err
}

// faults returns the faults of the definition that do not depend on types.
func (d Def) faults() []error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for i, name := range append([]string{d.Name}, d.Aliases...) {
		if !isName(name, "_-") {
			add("clients refuse the name %q: letters, digits, _ and -, at most 64 of them", name)
		}
		if i > 0 && (name == d.Name || slices.Index(d.Aliases, name) != i-1) {
			add("the alias %q is given twice", name)
		}
	}
	if d.Hints.ReadOnly && d.Hints.Destructive {
		add("a tool cannot be both read-only and destructive")
	}
	if d.Timeout < 0 || d.MaxConcurrent < 0 || d.MaxTokens < 0 {
		add("Timeout, MaxConcurrent and MaxTokens cannot be negative")
	}
	if _, taken := d.Meta[metaCallSettings]; taken {
		add("_meta %s is reserved", metaCallSettings)
	}
	return faults
}

// outputSchema returns the schema of structuredContent. Its root requires no
// member and has a code, since strict clients also check errors against it.
func outputSchema(t reflect.Type) (*schema, error) {
	s, err := buildSchema(t, true)
	if err != nil {
		return s, fmt.Errorf("output: %w", err)
	}
	if s.kind == kindMap {
		return s, checkMapOutput(s)
	}
	if s.kind != kindObject {
		return s, fmt.Errorf("output must be a struct or a map, not %s", t)
	}
	s.optionalRoot = true
	code := schema{kind: kindString, description: "stable code of an error"}
	if i, taken := s.byName["code"]; taken {
		if s.properties[i].kind != kindString || len(s.properties[i].enum) > 0 {
			return s, errors.New("output: code is the error's code, a string")
		}
		return s, nil
	}
	s.byName["code"] = len(s.properties)
	s.properties = append(s.properties, property{name: "code", schema: &code})
	return s, nil
}

// recursive reports whether the type refers to itself, or contains a type that
// does.
func (s *schema) recursive() bool {
	return s.kind == kindRef || s.items != nil && s.items.recursive() ||
		slices.ContainsFunc(s.properties, func(p property) bool { return p.recursive() })
}

// structuredSchema returns the schema of structuredAnswer's object.
func (t *Tool) structuredSchema() *schema {
	out := schema{kind: kindObject, byName: map[string]int{}, optionalRoot: true}
	if t.output != nil {
		out.defs = t.output.defs
	}
	add := func(p property) {
		if _, taken := out.byName[p.name]; !taken {
			out.byName[p.name] = len(out.properties)
			out.properties = append(out.properties, p)
		}
	}
	if t.row != nil {
		add(property{name: "results", schema: &schema{kind: kindList, items: t.row}})
	}
	add(property{name: "text", schema: &schema{kind: kindString, description: "the answer as text, if it has no rows"}})
	add(property{name: "code", schema: &schema{kind: kindString, description: "stable code of an error"}})
	if t.output != nil && t.output.kind == kindObject {
		for _, p := range t.output.properties {
			add(p)
		}
	}
	return &out
}

// checkMapOutput returns an error if an error's code does not fit the map's
// values.
func checkMapOutput(s *schema) error {
	if k := s.items.target().kind; k != kindString && k != kindAny {
		return errors.New("output: an error's code does not fit into a map of " + plural(s.items.typeName()) + ": use a struct")
	}
	return nil
}

// metaCallSettings is the _meta key for a tool's call settings, such as timeout
// and concurrency, which hosts read.
const metaCallSettings = "toolroom/call"

// define returns the tool's entry for tools/list.
func (t *Tool) define() (json.RawMessage, error) {
	d := t.def
	type annotations struct {
		ReadOnly    bool `json:"readOnlyHint"`
		Destructive bool `json:"destructiveHint"`
		Idempotent  bool `json:"idempotentHint"`
		OpenWorld   bool `json:"openWorldHint"`
	}
	meta := map[string]any{metaCallSettings: struct {
		Validates  bool  `json:"validates"`
		TimeoutMS  int64 `json:"timeoutMs"` // 0: none
		Concurrent int   `json:"concurrency"`
		Control    bool  `json:"control,omitempty"`
	}{true, d.Timeout.Milliseconds(), cmpPositive(d.MaxConcurrent, wire.DefaultMaxConcurrent), d.Control}}
	for key, value := range d.Meta {
		meta[key] = value
	}
	text, err := jsonrpc.Marshal(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations annotations     `json:"annotations"`
		Meta        map[string]any  `json:"_meta"`
	}{
		d.Name, d.Title, strings.TrimSpace(d.Description), t.input.JSON(), t.OutputSchema(),
		annotations{d.Hints.ReadOnly, d.Hints.Destructive, d.Hints.Idempotent, d.Hints.OpenWorld}, meta,
	})
	if err != nil {
		return nil, fmt.Errorf("the definition cannot be sent as JSON: %w", err)
	}
	return text, nil
}

func cmpPositive(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// warn logs, for the tool's author, a fault that the client is not told about.
func (t *Tool) warn(format string, args ...any) {
	slog.Warn(t.Name() + ": " + fmt.Sprintf(format, args...))
}
