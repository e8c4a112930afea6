package openai

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// An answer collects a chat completion, from a stream or a whole body.
type answer struct {
	*endpoint.Pieces
	names *llm.NameMap

	parts        map[llm.PartType]int // index of the part with the thinking, text or refusal
	calls        map[string]int       // index of a call's part, by the call's index, ID or name in the stream
	ids          map[int]string       // ID of the call in each part
	lastWithID   map[string]int       // index of the last part with an ID
	lastCall     int                  // index of the part with the last call
	generatedIDs int                  // number of generated IDs
}

// newAnswer returns an empty answer whose pieces go to p.
func newAnswer(p *endpoint.Pieces, names *llm.NameMap) *answer {
	return &answer{Pieces: p, names: names, parts: map[llm.PartType]int{}, calls: map[string]int{}, ids: map[int]string{}, lastWithID: map[string]int{}, lastCall: -1}
}

// HasBegun reports whether a piece was passed on; false for an answer without Pieces.
func (a *answer) HasBegun() bool { return a.Pieces != nil && a.Pieces.HasBegun() }

// Response returns the complete answer, with the reasons for its end that some servers
// leave out.
func (a *answer) Response() *llm.Response {
	r := a.Partial()
	if a.State() != endpoint.Open && r.StopReason == "" { // [DONE] without a finish reason
		r.StopReason, r.VendorStop = llm.StopEnd, "stop"
	}
	if r.StopReason == llm.StopEnd && len(r.Calls()) > 0 { // several servers send "stop" with calls
		r.StopReason, r.VendorStop = llm.StopCalls, "tool_calls"
	}
	return a.Pieces.Response()
}

// DecodeBody implements endpoint.Answer: it adds a complete chat completion, and returns an
// error for a malformed one.
func (a *answer) DecodeBody(body []byte) error {
	r, _, err := wire.DecodeResponse(body, wire.Options{Names: a.names})
	if err != nil {
		return err
	}
	for _, c := range r.Calls() {
		if c.ID == "" {
			c.ID = a.newID(r.ID)
		}
	}
	return a.AddWhole(r)
}

// newID returns an ID for a call that has none. It contains the answer's ID, so that
// it differs in each turn.
func (a *answer) newID(answer string) string {
	a.generatedIDs++
	return fmt.Sprintf("call_%s_%d", llm.NameRule{Max: 24}.MakeValid("a"+strings.TrimPrefix(answer, "chatcmpl-")), a.generatedIDs)
}

// DecodeEvent implements endpoint.Answer: it adds a chunk of a stream. It returns the error
// that a chunk reports, and one for a malformed chunk.
func (a *answer) DecodeEvent(_ string, data []byte) error {
	if strings.TrimSpace(string(data)) == "[DONE]" {
		a.SetState(endpoint.Over)
		return nil
	}
	if err := endpoint.ErrorIn(data); err != nil {
		return err
	}
	v, err := tree.Parse(data)
	if err != nil {
		return endpoint.Malformed(err)
	}
	r := a.Partial()
	a.SetOrigin(llm.OpenAI, v.Get("id").Str(), v.Get("model").Str())
	if created := v.Get("created").Int(); created != 0 {
		r.Created = int64(created)
	}
	if u := wire.DecodeUsage(v.Get("usage")); u != nil {
		r.Usage = u
	}
	for _, choice := range v.Get("choices").PeekItems() {
		if choice.Get("index").Int() != 0 { // only one choice was requested
			continue
		}
		a.addDelta(choice.Get("delta"))
		if word := choice.Get("finish_reason").Str(); word != "" {
			r.VendorStop, r.StopReason = word, wire.StopReason(word)
			a.SetState(endpoint.Complete)
		}
	}
	return nil
}

// addDelta adds the delta of a choice to the answer: thinking, text, refusal and calls.
func (a *answer) addDelta(d *tree.Value) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text := d.Get(name).Str(); text != "" {
			a.addText(llm.ThinkingPart, text)
			break
		}
	}
	if content := d.Get("content"); content.Is(tree.Array) { // a list of parts, as from Mistral
		for _, item := range content.Items {
			a.addText(llm.TextPart, item.Get("text").Str())
		}
	} else {
		a.addText(llm.TextPart, content.Str())
	}
	a.addText(llm.RefusalPart, d.Get("refusal").Str())
	for _, c := range d.Get("tool_calls").PeekItems() {
		a.addCall(c)
	}
	if old := d.Get("function_call"); old.Is(tree.Object) {
		a.addCall(tree.Obj("index", tree.Int(0), "function", old))
	}
}

// addText adds text to the only part of this type.
func (a *answer) addText(kind llm.PartType, text string) {
	if text == "" {
		return
	}
	at, ok := a.parts[kind]
	if !ok {
		at = a.PartCount()
		a.parts[kind] = at
	}
	a.Add(llm.Delta{Index: at, Type: kind, Text: text})
}

// addCall begins a call, or adds arguments to one; see partOfCall.
func (a *answer) addCall(c *tree.Value) {
	id, f := c.Get("id").Str(), c.Get("function")
	name := f.Get("name").Str()
	at, begins := a.partOfCall(c.Get("index"), id, name)
	d := llm.Delta{Index: at, Type: llm.CallPart}
	if begins {
		if d.ID, d.Name = id, a.names.FromVendor(name); d.ID == "" {
			d.ID = a.newID(a.Partial().ID)
		}
		a.ids[at], a.lastWithID[id] = id, at
	}
	switch arguments := f.Get("arguments"); {
	case arguments.Is(tree.String):
		d.Args = arguments.Text
	case arguments.Is(tree.Object): // some servers send an object
		d.Args = string(arguments.TakeRaw())
	}
	if signature := c.Get("extra_content").Get("google").Get("thought_signature").Str(); signature != "" {
		d.Signature = &llm.Signature{Vendor: llm.Gemini, Value: signature}
	}
	a.Add(d)
	a.lastCall = at
}

// partOfCall returns the index of the part with the call that a piece belongs to.
// begins means that the piece begins a new call. Some servers send no index, or 0 for
// every call; then a new ID or, without IDs, a new name begins another call.
func (a *answer) partOfCall(index *tree.Value, id, name string) (at int, begins bool) {
	key := "last"
	if index.Is(tree.Number) {
		key = "#" + index.Text
	}
	at, known := a.calls[key]
	if key == "last" && id != "" {
		if part, ok := a.lastWithID[id]; ok {
			return part, false
		}
	}
	switch {
	case !known && key == "last" && a.lastCall >= 0 && id == "" && name == "":
		return a.lastCall, false
	case known && id != "" && a.ids[at] != id, known && key == "last" && id == "" && name != "":
		known = false
	}
	if !known {
		at = a.PartCount()
		a.calls[key] = at
	}
	return at, !known
}
