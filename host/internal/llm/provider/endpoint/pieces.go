package endpoint

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Strict are the schemas of the tools, by name, whose arguments come back in another
// form than the tool takes, since its model is held to them.
type Strict map[string]json.RawMessage

// StrictOf finds them. all says that the model is held to every tool's.
func StrictOf(tools []llm.Tool, all bool, held schema.Held) Strict {
	found := Strict{}
	for _, t := range tools {
		if !all && !t.Strict {
			continue
		}
		written, strict := schema.Arguments(t.Input, true, held, "", &llm.Losses{})
		if strict && !schema.Same(written, tree.Raw(t.Input)) {
			found[t.Name] = t.Input
		}
	}
	return found
}

// Pieces is an answer that is put together and handed on as it comes. Arguments that
// have to be restored are handed on when they are whole.
type Pieces struct {
	on     func(llm.Delta) // nil: nobody is told
	strict Strict
	state  State
	begun  bool
	closed bool
	stream llm.Stream
	held   map[int]bool // the arguments of these parts are not handed on yet
}

// NewPieces begins one.
func NewPieces(on func(llm.Delta), strict Strict) *Pieces {
	return &Pieces{on: on, strict: strict, held: map[int]bool{}}
}

// Add adds a piece.
func (p *Pieces) Add(d llm.Delta) {
	p.stream.Add(d)
	if d.Name != "" && p.strict[d.Name] != nil {
		p.held[d.Index] = true
	}
	if p.held[d.Index] {
		d.Args = ""
	}
	p.tell(d)
}

func (p *Pieces) tell(d llm.Delta) {
	if p.on != nil {
		p.begun = true
		p.on(d)
	}
}

// State returns the progress of the answer.
func (p *Pieces) State() State { return p.state }

// Reach says that it has come further.
func (p *Pieces) Reach(s State) { p.state = s }

// Begun reports whether anything was handed on.
func (p *Pieces) Begun() bool { return p.begun }

// Len returns the number of parts.
func (p *Pieces) Len() int { return len(p.stream.Response.Parts) }

// Sofar returns the partial response. The caller may set its members except the parts.
func (p *Pieces) Sofar() *llm.Response { return &p.stream.Response }

// By says whose answer it is, and its id and model as far as an event has them.
func (p *Pieces) By(vendor llm.Vendor, id, model string) {
	r := p.Sofar()
	r.By = vendor
	if id != "" {
		r.ID = id
	}
	if model != "" {
		r.Model = model
	}
}

// Take takes an answer that came as a whole, unless it is none or has too many parts.
func (p *Pieces) Take(r *llm.Response) error {
	switch {
	case len(r.Parts) > maxParts:
		return errParts
	case len(r.Parts) == 0 && r.Stop == "":
		return errEmpty
	}
	for _, part := range r.Parts {
		p.restore(part.ToolCall)
	}
	p.stream.Response, p.closed, p.state = *r, true, Over
	for _, d := range r.Pieces() {
		p.tell(d)
	}
	return nil
}

// Response ends the answer and returns it; nil: none.
func (p *Pieces) Response() *llm.Response {
	r := &p.stream.Response
	if !p.closed {
		p.closed = true
		p.stream.Calls()
		for i := range r.Parts {
			c := r.Parts[i].ToolCall
			p.restore(c)
			if p.held[i] {
				p.tell(llm.Delta{Index: i, Type: llm.Call, Args: string(c.Args) + c.Malformed})
			}
		}
	}
	if len(r.Parts) == 0 && r.Stop == "" {
		return nil
	}
	return r
}

// restore makes a call's arguments what its tool takes.
func (p *Pieces) restore(c *llm.ToolCall) {
	if c != nil && c.Args != nil && p.strict[c.Name] != nil {
		c.Args = schema.Restore(p.strict[c.Name], c.Args)
	}
}

// Merge puts the members of extra, an object, into a request that has none of the
// name.
func Merge(body *tree.Value, extra json.RawMessage) {
	for _, m := range tree.Raw(extra).Each() {
		if body.Get(m.Name) == nil {
			body.Set(m.Name, m.Value)
		}
	}
}
