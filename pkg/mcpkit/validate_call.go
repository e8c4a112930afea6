package mcpkit

import (
	"context"
	"strings"
)

// validate parses and checks the arguments of a call, and adds notes about
// tolerated deviations to ctx's call. The error is a
// *callerror.ValidationError.
func (t *Tool) validate(ctx context.Context, args []byte) (*jsonNode, error) {
	if len(strings.TrimSpace(string(args[:min(len(args), 16)]))) == 0 && len(args) <= 16 {
		args = []byte("{}")
	}
	n, err := parseJSON(args)
	if err != nil {
		c := &checker{faults: []fault{{text: "the arguments are " + err.Error()}}}
		return nil, c.faultsError(t)
	}
	if n.isNull() {
		n = &jsonNode{kind: '{', raw: []byte("{}")}
	}
	c := &checker{tolerant: true, refuseUnknown: t.def.RefuseUnknown}
	n = c.check(t.input, n, nil)
	if len(c.faults) > 0 {
		return nil, c.faultsError(t)
	}
	const maxNotes = 10
	if len(c.renamedArgs) > 0 {
		Notef(ctx, "%s", strings.Join(c.renamedArgs[:min(len(c.renamedArgs), maxNotes)], ", "))
	}
	if len(c.nullArgs) > 0 {
		NoteFirstf(ctx, "treated as not given: %s", strings.Join(c.nullArgs[:min(len(c.nullArgs), maxNotes)], ", "))
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
