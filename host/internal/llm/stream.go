package llm

import (
	"encoding/json"
	"strings"
)

// A Delta is an addition to the part at Index of a response. The first one of an index
// sets the kind of the part. Parts begin in order, and several may grow at once.
type Delta struct {
	Index int      `json:"index"`
	Type  PartType `json:"type"`

	Text string `json:"text,omitempty"` // more of a text, thinking or refusal
	ID   string `json:"id,omitempty"`   // of a call: said once
	Name string `json:"name,omitempty"` // of a call: said once, with its first
	Args string `json:"args,omitempty"` // of a call: more of the text of its arguments

	Signature *Signature `json:"signature,omitempty"` // said once
	Whole     *Part      `json:"whole,omitempty"`     // a part that comes as a whole: images, what is opaque
}

// A Stream assembles a response from deltas. The zero value is ready. The reader of
// the stream sets Response's other members.
type Stream struct {
	Response Response

	texts, arguments map[int]*strings.Builder // of its parts; a string of a Builder is no copy
}

// grow adds to the text of a part, and returns the whole.
func grow(all *map[int]*strings.Builder, index int, before, more string) string {
	if *all == nil {
		*all = map[int]*strings.Builder{}
	}
	b := (*all)[index]
	if b == nil {
		b = &strings.Builder{}
		b.WriteString(before)
		(*all)[index] = b
	}
	b.WriteString(more)
	return b.String()
}

// Add adds one. A delta of a part that does not begin there is added to none.
func (s *Stream) Add(d Delta) {
	r := &s.Response
	if d.Index < 0 || d.Index > len(r.Parts) {
		return
	}
	if d.Index == len(r.Parts) {
		r.Parts = append(r.Parts, begun(d))
	}
	p := &r.Parts[d.Index]
	if d.Whole != nil {
		*p = *d.Whole
		return
	}
	if d.Text != "" {
		p.Text = grow(&s.texts, d.Index, p.Text, d.Text)
	}
	if d.Signature != nil {
		p.Signature = d.Signature
	}
	if p.ToolCall == nil {
		return
	}
	if d.ID != "" {
		p.ToolCall.ID = d.ID
	}
	if d.Name != "" {
		p.ToolCall.Name = d.Name
	}
	grow(&s.arguments, d.Index, "", d.Args)
}

// begun is the part that a delta begins.
func begun(d Delta) Part {
	p := Part{Type: d.Type}
	if d.Type == Call {
		p.ToolCall = &ToolCall{}
	}
	return p
}

// Calls parses the arguments of the finished calls. It must be called once, after the
// last delta.
func (s *Stream) Calls() {
	for i := range s.Response.Parts {
		c := s.Response.Parts[i].ToolCall
		if c == nil || c.Args != nil || c.Malformed != "" {
			continue
		}
		var text string
		if b := s.arguments[i]; b != nil {
			text = b.String()
		}
		var object map[string]json.RawMessage
		switch {
		case len(text) == 0:
			c.Args = json.RawMessage("{}")
		case json.Unmarshal([]byte(text), &object) != nil || object == nil:
			c.Malformed = text
		default:
			c.Args = json.RawMessage(text)
		}
	}
}

// Pieces are the deltas that make up a response that came as a whole, one a part.
func (r *Response) Pieces() []Delta {
	pieces := make([]Delta, 0, len(r.Parts))
	for i, p := range r.Parts {
		d := Delta{Index: i, Type: p.Type, Text: p.Text, Signature: p.Signature}
		switch {
		case p.ToolCall != nil:
			d.ID, d.Name, d.Args = p.ToolCall.ID, p.ToolCall.Name, string(p.ToolCall.Args)+p.ToolCall.Malformed
		case p.Media != nil || p.Raw != nil || p.ToolResult != nil:
			whole := p
			d.Whole = &whole
		}
		pieces = append(pieces, d)
	}
	return pieces
}
