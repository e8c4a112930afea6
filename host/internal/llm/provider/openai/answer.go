package openai

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// answer reads one.
type answer struct {
	*endpoint.Pieces
	names *llm.Names

	parts map[llm.PartType]int // where thinking, text and refusal are
	calls map[string]int       // where calls are, by what tells them apart
	ids   map[int]string       // of the calls, by part
	named map[string]int       // the last part with an id
	last  int                  // the part of the last call
	made  int                  // ids
}

func newAnswer(p *endpoint.Pieces, names *llm.Names) *answer {
	return &answer{Pieces: p, names: names, parts: map[llm.PartType]int{}, calls: map[string]int{}, ids: map[int]string{}, named: map[string]int{}, last: -1}
}

// Begun also holds for an answer that nothing was asked for.
func (a *answer) Begun() bool { return a.Pieces != nil && a.Pieces.Begun() }

func (a *answer) Response() *llm.Response {
	r := a.Sofar()
	if a.State() != endpoint.Open && r.Stop == "" { // [DONE] without a word of why
		r.Stop, r.Word = llm.StopEnd, "stop"
	}
	if r.Stop == llm.StopEnd && len(r.Calls()) > 0 { // as several servers have it
		r.Stop, r.Word = llm.StopCalls, "tool_calls"
	}
	return a.Pieces.Response()
}

// Whole reads a chat completion.
func (a *answer) Whole(body []byte) error {
	r, _, err := wire.DecodeResponse(body, wire.Options{Names: a.names})
	if err != nil {
		return err
	}
	for _, c := range r.Calls() {
		if c.ID == "" {
			c.ID = a.newID(r.ID)
		}
	}
	return a.Take(r)
}

// newID is an id for a call that has none. That of the answer is in it, so that it
// is another in each turn.
func (a *answer) newID(answer string) string {
	a.made++
	return fmt.Sprintf("call_%s_%d", llm.NameRule{Max: 24}.Short("a"+strings.TrimPrefix(answer, "chatcmpl-")), a.made)
}

// Event reads a chunk.
func (a *answer) Event(_ string, data []byte) error {
	if strings.TrimSpace(string(data)) == "[DONE]" {
		a.Reach(endpoint.Over)
		return nil
	}
	if err := endpoint.Fault(data); err != nil {
		return err
	}
	v, err := tree.Parse(data)
	if err != nil {
		return endpoint.Garbled(err)
	}
	r := a.Sofar()
	a.By(llm.OpenAI, v.Get("id").Str(), v.Get("model").Str())
	if created := v.Get("created").Int(); created != 0 {
		r.Created = int64(created)
	}
	if u := wire.DecodeUsage(v.Get("usage")); u != nil {
		r.Usage = u
	}
	for _, choice := range v.Get("choices").All() {
		if choice.Get("index").Int() != 0 { // one was asked for
			continue
		}
		a.delta(choice.Get("delta"))
		if word := choice.Get("finish_reason").Str(); word != "" {
			r.Word, r.Stop = word, wire.Stop(word)
			a.Reach(endpoint.Complete)
		}
	}
	return nil
}

func (a *answer) delta(d *tree.Value) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text := d.Get(name).Str(); text != "" {
			a.say(llm.Thinking, text)
			break
		}
	}
	if content := d.Get("content"); content.Is(tree.Array) { // parts, as Mistral has them
		for _, item := range content.Items {
			a.say(llm.Text, item.Get("text").Str())
		}
	} else {
		a.say(llm.Text, content.Str())
	}
	a.say(llm.Refusal, d.Get("refusal").Str())
	for _, c := range d.Get("tool_calls").All() {
		a.call(c)
	}
	if old := d.Get("function_call"); old.Is(tree.Object) {
		a.call(tree.Obj("index", tree.Int(0), "function", old))
	}
}

// say adds to a text. There is one of a kind.
func (a *answer) say(kind llm.PartType, text string) {
	if text == "" {
		return
	}
	at, ok := a.parts[kind]
	if !ok {
		at = a.Len()
		a.parts[kind] = at
	}
	a.Add(llm.Delta{Index: at, Type: kind, Text: text})
}

// call adds to a call, or begins one.
func (a *answer) call(c *tree.Value) {
	id, f := c.Get("id").Str(), c.Get("function")
	name := f.Get("name").Str()
	at, begins := a.place(c.Get("index"), id, name)
	d := llm.Delta{Index: at, Type: llm.Call}
	if begins {
		if d.ID, d.Name = id, a.names.Own(name); d.ID == "" {
			d.ID = a.newID(a.Sofar().ID)
		}
		a.ids[at], a.named[id] = id, at
	}
	switch arguments := f.Get("arguments"); {
	case arguments.Is(tree.String):
		d.Args = arguments.Text
	case arguments.Is(tree.Object): // as some servers send it
		d.Args = string(arguments.Whole())
	}
	if signature := c.Get("extra_content").Get("google").Get("thought_signature").Str(); signature != "" {
		d.Signature = &llm.Signature{By: llm.Gemini, Value: signature}
	}
	a.Add(d)
	a.last = at
}

// place returns the call to which a piece belongs, by its index. Some servers send no
// index, or 0 for every call; then a new id or, without ids, a new name begins another
// call.
func (a *answer) place(index *tree.Value, id, name string) (at int, begins bool) {
	key := "last"
	if index.Is(tree.Number) {
		key = "#" + index.Text
	}
	at, known := a.calls[key]
	if key == "last" && id != "" {
		if part, ok := a.named[id]; ok {
			return part, false
		}
	}
	switch {
	case !known && key == "last" && a.last >= 0 && id == "" && name == "":
		return a.last, false
	case known && id != "" && a.ids[at] != id, known && key == "last" && id == "" && name != "":
		known = false
	}
	if !known {
		at = a.Len()
		a.calls[key] = at
	}
	return at, !known
}
