package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// answer reads one.
type answer struct {
	*endpoint.Pieces
	names *llm.Names

	usage  *tree.Value // as far as it was told
	blocks map[int]*block
}

// block is a content block that has begun.
type block struct {
	at    int // its part
	kind  llm.PartType
	raw   *tree.Value     // of one that is only passed on
	input strings.Builder // of such
	given bool            // the call came with its arguments
}

// Whole reads a message.
func (a *answer) Whole(body []byte) error {
	r, _, err := wire.DecodeResponse(body, wire.Options{Names: a.names})
	if err != nil {
		return err
	}
	return a.Take(r)
}

// Event reads one of a stream. Those that it does not know mean nothing to it.
func (a *answer) Event(_ string, data []byte) error {
	v, err := tree.Parse(data)
	if err != nil {
		return endpoint.Garbled(err)
	}
	index := v.Get("index").Int()
	switch v.Get("type").Str() {
	case "error":
		if err := endpoint.Fault(data); err != nil {
			return err
		}
		return endpoint.Garbled(fmt.Errorf("an error without a text"))
	case "message_start":
		m, r := v.Get("message"), a.Sofar()
		r.ID, r.Model, r.By = m.Get("id").Str(), m.Get("model").Str(), llm.Anthropic
		a.count(m.Get("usage"))
	case "content_block_start":
		a.begin(index, v.Get("content_block"))
	case "content_block_delta":
		a.grow(index, v.Get("delta"))
	case "content_block_stop":
		a.end(index)
	case "message_delta":
		d, r := v.Get("delta"), a.Sofar()
		if word := d.Get("stop_reason").Str(); word != "" {
			r.Word, r.Stop, r.Matched = word, wire.Stop(word), d.Get("stop_sequence").Str()
		}
		a.count(v.Get("usage"))
	case "message_stop":
		a.Reach(endpoint.Over)
	}
	return nil
}

// count adds the usage of an event, which repeats earlier counts with their growth.
func (a *answer) count(usage *tree.Value) {
	if !usage.Is(tree.Object) {
		return
	}
	if a.usage == nil {
		a.usage = tree.Obj()
	}
	for _, m := range usage.Members {
		if !m.Value.Is(tree.Null) {
			a.usage.Set(m.Name, m.Value)
		}
	}
	a.Sofar().Usage = wire.DecodeUsage(a.usage.Clone())
}

// begin begins a block.
func (a *answer) begin(index int, v *tree.Value) {
	b := &block{at: a.Len()}
	d := llm.Delta{Index: b.at}
	own := func(name string) *llm.Signature {
		s := v.Get(name)
		if !s.Is(tree.String) {
			return nil
		}
		return &llm.Signature{By: llm.Anthropic, Value: s.Text}
	}
	switch v.Get("type").Str() {
	case "text":
		d.Type, d.Text = llm.Text, v.Get("text").Str()
	case "thinking":
		d.Type, d.Text, d.Signature = llm.Thinking, v.Get("thinking").Str(), own("signature")
	case "redacted_thinking":
		d.Type, d.Signature = llm.Redacted, own("data")
	case "tool_use":
		d.Type, d.ID, d.Name = llm.Call, v.Get("id").Str(), a.names.Own(v.Get("name").Str())
		if input := v.Get("input"); len(input.Each()) > 0 { // as some that are compatible send it
			d.Args, b.given = string(input.JSON()), true
		}
	case "":
		return
	default:
		b.raw = v
		d.Type, d.Whole = llm.Opaque, opaque(v)
	}
	b.kind = d.Type
	a.blocks[index] = b
	a.Add(d)
}

// opaque is a block that only its vendor can read.
func opaque(v *tree.Value) *llm.Part {
	return &llm.Part{Type: llm.Opaque, By: llm.Anthropic, Raw: v.JSON()}
}

// grow adds to a block.
func (a *answer) grow(index int, v *tree.Value) {
	b := a.blocks[index]
	if b == nil {
		return
	}
	d := llm.Delta{Index: b.at, Type: b.kind}
	switch v.Get("type").Str() {
	case "text_delta":
		d.Text = v.Get("text").Str()
	case "thinking_delta":
		d.Text = v.Get("thinking").Str()
	case "signature_delta":
		d.Signature = &llm.Signature{By: llm.Anthropic, Value: v.Get("signature").Str()}
	case "input_json_delta":
		text := v.Get("partial_json").Str()
		if b.raw != nil {
			b.input.WriteString(text)
			return
		}
		if b.given {
			return
		}
		d.Args = text
	default:
		return
	}
	if b.raw == nil && (d.Text != "" || d.Args != "" || d.Signature != nil) {
		a.Add(d)
	}
}

// end ends a block. A block that is passed on is complete then.
func (a *answer) end(index int) {
	b := a.blocks[index]
	if b == nil {
		return
	}
	delete(a.blocks, index)
	if input := b.input.String(); b.raw != nil && json.Valid([]byte(input)) {
		b.raw.Set("input", tree.Raw(json.RawMessage(input)))
		a.Add(llm.Delta{Index: b.at, Type: b.kind, Whole: opaque(b.raw)})
	}
}
