package mcpkit

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// validate parses and checks the arguments of a call, and adds notes about
// tolerated deviations to ctx.
func (t *Tool) validate(ctx context.Context, args []byte) (*node, error) {
	if len(strings.TrimSpace(string(args[:min(len(args), 16)]))) == 0 && len(args) <= 16 {
		args = []byte("{}")
	}
	n, err := parseJSON(args)
	if err != nil {
		c := &checker{faults: []fault{{text: "the arguments are " + err.Error()}}}
		return nil, c.err(t)
	}
	if n.isNull() {
		n = &node{kind: '{', raw: []byte("{}")}
	}
	c := &checker{tolerant: true, refuseUnknown: t.def.RefuseUnknown}
	n = c.check(t.input, n, nil)
	if len(c.faults) > 0 {
		return nil, c.err(t)
	}
	const maxNotes = 10
	if len(c.renamed) > 0 {
		Notef(ctx, "%s", strings.Join(c.renamed[:min(len(c.renamed), maxNotes)], ", "))
	}
	if len(c.nulls) > 0 {
		NoteFirstf(ctx, "treated as not given: %s", strings.Join(c.nulls[:min(len(c.nulls), maxNotes)], ", "))
	}
	for i, note := range c.notes {
		if i == maxNotes {
			NoteFirstf(ctx, "%d more arguments were unknown or converted", len(c.notes)-i+c.droppedNotes)
			break
		}
		NoteFirstf(ctx, "%s", note)
	}
	return n, nil
}

// err returns one error for all faults.
func (c *checker) err(t *Tool) error {
	code := toolerr.MissingParameter
	var lines []string
	pointers := []string{}
	for i, f := range c.faults {
		if !f.missing {
			code = toolerr.InvalidParams
		}
		if i < maxFaults {
			lines = append(lines, f.text)
		}
		if i < maxFaults && f.path != "" {
			pointers = append(pointers, quotable(f.path))
		}
	}
	total := len(c.faults) + c.droppedFaults
	if total > len(lines) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(lines)))
	}
	detail := strings.Join(lines, "\n")
	text := detail
	if total > 1 {
		text = fmt.Sprintf("%d invalid arguments for %s:\n%s", total, t.Name(), detail)
	}
	if signature := t.input.signature(); signature != "" {
		text += fmt.Sprintf("\n%s takes: %s", t.Name(), signature)
	}
	return &callerror.ValidationError{
		Type: callerror.ArgsInvalid, Tool: t.Name(), Detail: detail, Path: c.faults[0].path,
		Err: toolerr.New(code, "%s", text).With("invalid", pointers),
	}
}

// decodeArgs decodes checked arguments into a value of type A.
func decodeArgs[A any](t *Tool, n *node) (A, error) {
	var args A
	if err := decode(t.input, n, reflect.ValueOf(&args).Elem(), nil); err != nil {
		return args, &callerror.ValidationError{Type: callerror.ArgsInvalid, Tool: t.Name(), Detail: err.Error(),
			Err: toolerr.New(toolerr.InvalidParams, "%w", err)}
	}
	return args, nil
}
