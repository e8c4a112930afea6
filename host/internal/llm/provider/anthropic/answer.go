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

// An answer collects a message of the Messages API, from a stream or a whole body.
type answer struct {
	*endpoint.Pieces
	names *llm.NameMap

	usage  *tree.Value    // counts received so far
	blocks map[int]*block // unfinished blocks by their index in the stream
}

// block is a content block whose first event was received.
type block struct {
	partIndex    int // index of its part
	kind         llm.PartType
	raw          *tree.Value     // of a block that is kept unchanged
	input        strings.Builder // input of such a block so far
	hasArguments bool            // the first event contained the arguments of the call
}

// DecodeBody implements endpoint.Answer: it adds a complete message, and returns an error
// for a malformed one.
func (a *answer) DecodeBody(body []byte) error {
	r, _, err := wire.DecodeResponse(body, wire.Options{Names: a.names})
	if err != nil {
		return err
	}
	return a.AddWhole(r)
}

// DecodeEvent implements endpoint.Answer: it adds an event of a stream, and ignores unknown
// events. It returns the error that an event reports, and one for a malformed event.
func (a *answer) DecodeEvent(_ string, data []byte) error {
	v, err := tree.Parse(data)
	if err != nil {
		return endpoint.Malformed(err)
	}
	index := v.Get("index").Int()
	switch v.Get("type").Str() {
	case "error":
		if err := endpoint.ErrorIn(data); err != nil {
			return err
		}
		return endpoint.Malformed(fmt.Errorf("an error without a text"))
	case "message_start":
		m, r := v.Get("message"), a.Partial()
		r.ID, r.Model, r.Vendor = m.Get("id").Str(), m.Get("model").Str(), llm.Anthropic
		a.mergeUsage(m.Get("usage"))
	case "content_block_start":
		a.beginBlock(index, v.Get("content_block"))
	case "content_block_delta":
		a.extendBlock(index, v.Get("delta"))
	case "content_block_stop":
		a.endBlock(index)
	case "message_delta":
		d, r := v.Get("delta"), a.Partial()
		if word := d.Get("stop_reason").Str(); word != "" {
			r.VendorStop, r.StopReason, r.MatchedStop = word, wire.StopReason(word), d.Get("stop_sequence").Str()
		}
		a.mergeUsage(v.Get("usage"))
	case "message_stop":
		a.SetState(endpoint.Over)
	}
	return nil
}

// mergeUsage merges the usage of an event, which repeats earlier counts, now larger.
func (a *answer) mergeUsage(usage *tree.Value) {
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
	a.Partial().Usage = wire.DecodeUsage(a.usage.Clone())
}

// beginBlock handles the first event of the block with this index: it begins a part of the
// answer.
func (a *answer) beginBlock(index int, v *tree.Value) {
	b := &block{partIndex: a.PartCount()}
	d := llm.Delta{Index: b.partIndex}
	own := func(name string) *llm.Signature {
		s := v.Get(name)
		if !s.Is(tree.String) {
			return nil
		}
		return &llm.Signature{Vendor: llm.Anthropic, Value: s.Text}
	}
	switch v.Get("type").Str() {
	case "text":
		d.Type, d.Text = llm.TextPart, v.Get("text").Str()
	case "thinking":
		d.Type, d.Text, d.Signature = llm.ThinkingPart, v.Get("thinking").Str(), own("signature")
	case "redacted_thinking":
		d.Type, d.Signature = llm.RedactedPart, own("data")
	case "tool_use":
		d.Type, d.ID, d.Name = llm.CallPart, v.Get("id").Str(), a.names.FromVendor(v.Get("name").Str())
		if input := v.Get("input"); len(input.PeekMembers()) > 0 { // compatible servers send the arguments in the first event
			d.Args, b.hasArguments = string(input.JSON()), true
		}
	case "":
		return
	default:
		b.raw = v
		d.Type, d.Part = llm.OpaquePart, opaquePart(v)
	}
	b.kind = d.Type
	a.blocks[index] = b
	a.Add(d)
}

// opaquePart returns a block that only its vendor understands, unchanged.
func opaquePart(v *tree.Value) *llm.Part {
	return &llm.Part{Type: llm.OpaquePart, Vendor: llm.Anthropic, Raw: v.JSON()}
}

// extendBlock adds the content of an event to the part of the block with this index. It
// ignores unknown blocks.
func (a *answer) extendBlock(index int, v *tree.Value) {
	b := a.blocks[index]
	if b == nil {
		return
	}
	d := llm.Delta{Index: b.partIndex, Type: b.kind}
	switch v.Get("type").Str() {
	case "text_delta":
		d.Text = v.Get("text").Str()
	case "thinking_delta":
		d.Text = v.Get("thinking").Str()
	case "signature_delta":
		d.Signature = &llm.Signature{Vendor: llm.Anthropic, Value: v.Get("signature").Str()}
	case "input_json_delta":
		text := v.Get("partial_json").Str()
		if b.raw != nil {
			b.input.WriteString(text)
			return
		}
		if b.hasArguments {
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

// endBlock handles the last event of a block. An unchanged block is complete now.
func (a *answer) endBlock(index int) {
	b := a.blocks[index]
	if b == nil {
		return
	}
	delete(a.blocks, index)
	if input := b.input.String(); b.raw != nil && json.Valid([]byte(input)) {
		b.raw.Set("input", tree.Raw(json.RawMessage(input)))
		a.Add(llm.Delta{Index: b.partIndex, Type: b.kind, Part: opaquePart(b.raw)})
	}
}
