package gemini

import (
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// answer reads one.
type answer struct {
	*endpoint.Pieces
	names *llm.Names
	turn  int // how many contents there were before

	made int // ids of calls that have none
}

// Whole reads the answer to generateContent.
func (a *answer) Whole(body []byte) error {
	r, _, err := wire.DecodeResponse(body, a.turn, wire.Options{Names: a.names})
	if err != nil {
		return err
	}
	return a.Take(r)
}

// Event reads a piece of a stream, which has the form of an answer. There is no last
// one: the answer is complete when it says why it ended.
func (a *answer) Event(_ string, data []byte) error {
	if err := endpoint.Fault(data); err != nil {
		return err
	}
	v, err := tree.Parse(data)
	if err != nil {
		return endpoint.Garbled(err)
	}
	r := a.Sofar()
	a.By(llm.Gemini, v.Get("responseId").Str(), v.Get("modelVersion").Str())
	if u := wire.DecodeUsage(v.Get("usageMetadata")); u != nil {
		r.Usage = u
	}
	if len(v.Get("candidates").All()) == 0 && v.Get("promptFeedback").Get("blockReason").Str() == "" {
		return nil
	}
	piece, _, err := wire.DecodeResponse(data, a.turn, wire.Options{Names: a.names})
	if err != nil {
		return endpoint.Garbled(err)
	}
	calls := 0
	for _, p := range piece.Parts {
		if p.ToolCall != nil && p.ToolCall.ID == wire.ID(a.turn, calls) { // it was made, within this piece
			calls++
			p.ToolCall.ID = wire.ID(a.turn, a.made)
			a.made++
		}
		a.part(p)
	}
	if piece.Word != "" {
		r.Word, r.Stop = piece.Word, piece.Stop
		if piece.Stop != llm.StopRefusal {
			r.Stop = wire.Stop(piece.Word, len(r.Calls()) > 0)
		}
		a.Reach(endpoint.Complete)
	}
	return nil
}

// part adds a part, or to the last one: texts that follow each other are one. What
// is signed stands alone.
func (a *answer) part(p llm.Part) {
	last := a.Len() - 1
	if last >= 0 && p.Signature == nil && (p.Type == llm.Text || p.Type == llm.Thinking) {
		if before := a.Sofar().Parts[last]; before.Type == p.Type && before.Signature == nil {
			a.Add(llm.Delta{Index: last, Type: p.Type, Text: p.Text})
			return
		}
	}
	one := llm.Response{Parts: []llm.Part{p}}
	for _, d := range one.Pieces() {
		d.Index = last + 1
		a.Add(d)
	}
}
