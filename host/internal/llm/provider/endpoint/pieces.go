package endpoint

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// StrictSchemas holds the input schemas, by name, of the tools whose arguments have
// another form in strict mode than the tool accepts, so that they must be restored.
type StrictSchemas map[string]json.RawMessage

// NewStrictSchemas returns the schemas of such tools. all means that all tools are in
// strict mode; held are the vendor's limits.
func NewStrictSchemas(tools []llm.Tool, all bool, held schema.StrictLimits) StrictSchemas {
	found := StrictSchemas{}
	for _, t := range tools {
		if !all && !t.Strict {
			continue
		}
		written, strict := schema.StrictOrPlain(t.Input, true, held, "", &llm.Losses{})
		if strict && !schema.Equal(written, tree.Raw(t.Input)) {
			found[t.Name] = t.Input
		}
	}
	return found
}

// Pieces collects the parts of an answer and passes them to the caller of Ask as they
// arrive. Arguments that must be restored are passed on when they are complete.
type Pieces struct {
	on       func(llm.Delta) // nil: pieces are not passed on
	strict   StrictSchemas
	state    State
	passedOn bool // a piece was passed on
	closed   bool // the answer was finished
	stream   llm.ResponseBuilder
	heldBack map[int]bool // parts whose arguments were not passed on yet
}

// NewPieces returns an empty answer.
func NewPieces(on func(llm.Delta), strict StrictSchemas) *Pieces {
	return &Pieces{on: on, strict: strict, heldBack: map[int]bool{}}
}

// Add adds a piece to the answer and passes it on.
func (p *Pieces) Add(d llm.Delta) {
	p.stream.Add(d)
	if d.Name != "" && p.strict[d.Name] != nil {
		p.heldBack[d.Index] = true
	}
	if p.heldBack[d.Index] {
		d.Args = ""
	}
	p.passOn(d)
}

// passOn passes a piece to the caller, if the caller streams.
func (p *Pieces) passOn(d llm.Delta) {
	if p.on != nil {
		p.passedOn = true
		p.on(d)
	}
}

// State returns the progress of the answer.
func (p *Pieces) State() State { return p.state }

// SetState sets the progress of the answer.
func (p *Pieces) SetState(s State) { p.state = s }

// HasBegun reports whether a piece was passed on.
func (p *Pieces) HasBegun() bool { return p.passedOn }

// PartCount returns the number of parts.
func (p *Pieces) PartCount() int { return len(p.stream.Response.Parts) }

// Partial returns the response so far. The caller may set its fields except Parts.
func (p *Pieces) Partial() *llm.Response { return &p.stream.Response }

// SetOrigin sets the vendor of the answer, and its id and model unless they are empty.
func (p *Pieces) SetOrigin(vendor llm.Vendor, id, model string) {
	r := p.Partial()
	r.Vendor = vendor
	if id != "" {
		r.ID = id
	}
	if model != "" {
		r.Model = model
	}
}

// AddWhole sets the complete answer and passes it on. It returns an error if the answer
// is empty or has too many parts.
func (p *Pieces) AddWhole(r *llm.Response) error {
	switch {
	case len(r.Parts) > maxParts:
		return errTooManyParts
	case len(r.Parts) == 0 && r.StopReason == "":
		return errEmpty
	}
	for _, part := range r.Parts {
		p.restoreArguments(part.ToolCall)
	}
	p.stream.Response, p.closed, p.state = *r, true, Over
	for _, d := range r.Deltas() {
		p.passOn(d)
	}
	return nil
}

// Response finishes the answer and returns it; nil: it is empty. Later calls return the
// same.
func (p *Pieces) Response() *llm.Response {
	r := &p.stream.Response
	if !p.closed {
		p.closed = true
		p.stream.FinishCalls()
		for i := range r.Parts {
			c := r.Parts[i].ToolCall
			p.restoreArguments(c)
			if p.heldBack[i] {
				p.passOn(llm.Delta{Index: i, Type: llm.CallPart, Args: string(c.Args) + c.Malformed})
			}
		}
	}
	if len(r.Parts) == 0 && r.StopReason == "" {
		return nil
	}
	return r
}

// restoreArguments changes a call's arguments, in place, from the form of strict mode
// to the form that the tool accepts.
func (p *Pieces) restoreArguments(c *llm.ToolCall) {
	if c != nil && c.Args != nil && p.strict[c.Name] != nil {
		c.Args = schema.Restore(p.strict[c.Name], c.Args)
	}
}

// AddExtra adds the members of extra, a JSON object, to body, except those that it has.
func AddExtra(body *tree.Value, extra json.RawMessage) {
	for _, m := range tree.Raw(extra).PeekMembers() {
		if body.Get(m.Name) == nil {
			body.Set(m.Name, m.Value)
		}
	}
}
