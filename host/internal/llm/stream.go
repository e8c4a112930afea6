package llm

import (
	"encoding/json"
	"strings"
)

// A Delta is an addition to the part at Index of a response. The first delta of an
// index sets the part's type. Parts begin in order, and several can grow at the same
// time.
type Delta struct {
	Index int      `json:"index"`
	Type  PartType `json:"type"`

	Text string `json:"text,omitempty"` // more of a text, thinking or refusal
	ID   string `json:"id,omitempty"`   // ID of a call; in one delta
	Name string `json:"name,omitempty"` // tool name of a call; in its first delta
	Args string `json:"args,omitempty"` // more of the JSON text of a call's arguments

	Signature *Signature `json:"signature,omitempty"` // in one delta
	Part      *Part      `json:"whole,omitempty"`     // a part that is not sent in pieces: an image or opaque content
}

// A ResponseBuilder assembles a response from deltas. The zero value is ready to use.
// The reader of the stream sets the other fields of Response.
type ResponseBuilder struct {
	Response Response

	texts, arguments map[int]*strings.Builder // by index of the part; String of a Builder does not copy
}

// appendText appends more to the text of the part with this index, and returns the text
// so far. The first call for an index starts with the text before.
func appendText(all *map[int]*strings.Builder, index int, before, more string) string {
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

// Add adds a delta. It ignores a delta whose index skips a part.
func (s *ResponseBuilder) Add(d Delta) {
	r := &s.Response
	if d.Index < 0 || d.Index > len(r.Parts) {
		return
	}
	if d.Index == len(r.Parts) {
		r.Parts = append(r.Parts, newPart(d))
	}
	p := &r.Parts[d.Index]
	if d.Part != nil {
		*p = *d.Part
		return
	}
	if d.Text != "" {
		p.Text = appendText(&s.texts, d.Index, p.Text, d.Text)
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
	appendText(&s.arguments, d.Index, "", d.Args)
}

// newPart returns the part that a delta begins.
func newPart(d Delta) Part {
	p := Part{Type: d.Type}
	if d.Type == CallPart {
		p.ToolCall = &ToolCall{}
	}
	return p
}

// FinishCalls sets Args or Malformed of the calls from the collected texts. Call it once,
// after the last delta.
func (s *ResponseBuilder) FinishCalls() {
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

// Deltas returns a complete response as deltas, one for each part.
func (r *Response) Deltas() []Delta {
	pieces := make([]Delta, 0, len(r.Parts))
	for i, p := range r.Parts {
		d := Delta{Index: i, Type: p.Type, Text: p.Text, Signature: p.Signature}
		switch {
		case p.ToolCall != nil:
			d.ID, d.Name, d.Args = p.ToolCall.ID, p.ToolCall.Name, string(p.ToolCall.Args)+p.ToolCall.Malformed
		case p.Media != nil || p.Raw != nil || p.ToolResult != nil:
			whole := p
			d.Part = &whole
		}
		pieces = append(pieces, d)
	}
	return pieces
}
