package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// NewTool makes a tool that returns text. A is the struct of its arguments, or a
// map. These tags of its fields make the input schema:
//
//	json:"name,omitempty"  the argument's name; without omitempty (or omitzero,
//	                       or a pointer type) it is required
//	jsonschema:"text"      the description, unchanged; desc and description
//	                       are the same
//	enum:"a,b"             the allowed values of a string, a number, or a
//	                       list's items
//	default:"10"           the value if the argument is not given: lists as
//	                       "a,b" or JSON, other composites as JSON; false is
//	                       not written to the schema
//	min:"1" max:"20"       bounds of a number or a duration, or of the length
//	                       of a string, list or map; a lower bound of 0 or 1
//	                       is checked, but not written to the schema
//	alias:"old,other"      further names that are accepted, with a note; @file,
//	                       @dir and other groups are in aliasGroups. Two
//	                       arguments may share an alias if their JSON types
//	                       differ
//	hidden:"true"          accepted, but not in the schema: an optional argument
//	                       of other tools that the function translates
//	verbatim:"true"        of an optional string that is data: "null" and
//	                       "undefined" are text, and do not mean "not given"
//	argv:"true"            of a string that is a shell command: a list of
//	                       words is accepted, too, with a note
//	bare:"true"            of a list that mostly has one item: a bare value is
//	                       accepted as a list of one, without a note
//
// Each name is also accepted in camelCase and kebab-case. A time.Duration is
// text like "30s" (a bare number means milliseconds and adds a note), []byte is
// base64, any is any JSON value; in an any, whole numbers that a float64 would
// round become a json.Number. Embedded structs are flattened, and recursive
// types go to $defs.
//
// fn gets the decoded arguments and a ctx with the call's deadline. Its error
// becomes a result with isError. NewTool's own error lists every fault of the
// definition and of the tags.
func NewTool[A any](d Def, fn func(ctx context.Context, args A) (*Result, error)) (*Tool, error) {
	t := &Tool{def: d}
	err := t.setSchemas(reflect.TypeFor[A](), nil)
	if fn == nil {
		err = errors.Join(err, errors.New("no function"))
	}
	t.runFunc = func(ctx context.Context, n *jsonNode) (*Result, error) {
		args, err := decodeArgs[A](t, n)
		if err != nil {
			return nil, err
		}
		return fn(ctx, args)
	}
	return t.orNamedError(err)
}

// NewStructuredTool makes a tool that returns data: the value of type R becomes
// both structuredContent and the text, by its method String or else as JSON. A
// value that is not a JSON object is sent as {"result": value}. Data cannot be
// cut: a result above the budget is the error TOO_LARGE. d.Output must be nil.
func NewStructuredTool[A, R any](d Def, fn func(ctx context.Context, args A) (R, error)) (*Tool, error) {
	t := &Tool{def: d, returnsData: true}
	output := reflect.TypeFor[R]()
	wrap := !encodesAsObject(output)
	if wrap {
		output = reflect.TypeFor[struct {
			Result R `json:"result"`
		}]()
	}
	err := t.setSchemas(reflect.TypeFor[A](), output)
	if fn == nil {
		err = errors.Join(err, errors.New("no function"))
	}
	if d.Output != nil {
		err = errors.Join(err, errors.New("field Output is for NewTool: here the result's type says it"))
	}
	t.runFunc = func(ctx context.Context, n *jsonNode) (*Result, error) {
		args, err := decodeArgs[A](t, n)
		if err != nil {
			return nil, err
		}
		r, err := fn(ctx, args)
		if err != nil {
			return nil, err
		}
		return dataResult(r, wrap)
	}
	return t.orNamedError(err)
}

// encodesAsObject reports whether values of t are encoded as JSON objects.
func encodesAsObject(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	b := schemaBuilder{output: true}
	return b.specialSchema(t) == nil && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map)
}

// dataResult returns r as the result of a structured tool, nil for a nil pointer. wrap
// says that r is no object and becomes {"result": r}. It returns RESULT_INVALID for a
// value that cannot be encoded.
func dataResult(r any, wrap bool) (*Result, error) {
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

// orNamedError returns t if err is nil; otherwise no tool and the error with
// the tool's name.
func (t *Tool) orNamedError(err error) (*Tool, error) {
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.def.Name, err)
	}
	return t, nil
}

// setSchemas checks the definition, and sets the schemas and the entry for
// tools/list. If output is nil, Def.Output gives the output type. The error
// lists all faults.
func (t *Tool) setSchemas(input, output reflect.Type) error {
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
		if err == nil && t.row.isRecursive() {
			err = errors.New("field Row cannot be a recursive type")
		}
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	t.definition, err = t.makeDefinition()
	return err
}
