package gemini

import (
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// An answer collects an answer of generateContent, from a stream or a whole body.
type answer struct {
	*endpoint.Pieces
	names *llm.NameMap
	turn  int // number of contents in the request

	generatedIDs int // number of IDs generated for calls without an ID
}

// DecodeBody implements endpoint.Answer: it adds a complete answer, and returns an error
// for a malformed one.
func (a *answer) DecodeBody(body []byte) error {
	r, _, err := wire.DecodeResponse(body, a.turn, wire.Options{Names: a.names})
	if err != nil {
		return err
	}
	return a.AddWhole(r)
}

// DecodeEvent adds a piece of a stream, which has the format of an answer. No event marks
// the end: the answer is complete when it has a finish reason. It returns the error that an
// event reports, and one for a malformed event.
func (a *answer) DecodeEvent(_ string, data []byte) error {
	if err := endpoint.ErrorIn(data); err != nil {
		return err
	}
	v, err := tree.Parse(data)
	if err != nil {
		return endpoint.Malformed(err)
	}
	r := a.Partial()
	a.SetOrigin(llm.Gemini, v.Get("responseId").Str(), v.Get("modelVersion").Str())
	if u := wire.DecodeUsage(v.Get("usageMetadata")); u != nil {
		r.Usage = u
	}
	if len(v.Get("candidates").PeekItems()) == 0 && v.Get("promptFeedback").Get("blockReason").Str() == "" {
		return nil
	}
	piece, _, err := wire.DecodeResponse(data, a.turn, wire.Options{Names: a.names})
	if err != nil {
		return endpoint.Malformed(err)
	}
	calls := 0
	for _, p := range piece.Parts {
		if p.ToolCall != nil && p.ToolCall.ID == wire.CallID(a.turn, calls) { // the decoder generated the ID for this piece
			calls++
			p.ToolCall.ID = wire.CallID(a.turn, a.generatedIDs)
			a.generatedIDs++
		}
		a.addPart(p)
	}
	if piece.VendorStop != "" {
		r.VendorStop, r.StopReason = piece.VendorStop, piece.StopReason
		if piece.StopReason != llm.StopRefusal {
			r.StopReason = wire.StopReason(piece.VendorStop, len(r.Calls()) > 0)
		}
		a.SetState(endpoint.Complete)
	}
	return nil
}

// addPart adds a part, or appends to the last part: successive texts become one part,
// except signed ones.
func (a *answer) addPart(p llm.Part) {
	last := a.PartCount() - 1
	if last >= 0 && p.Signature == nil && (p.Type == llm.TextPart || p.Type == llm.ThinkingPart) {
		if before := a.Partial().Parts[last]; before.Type == p.Type && before.Signature == nil {
			a.Add(llm.Delta{Index: last, Type: p.Type, Text: p.Text})
			return
		}
	}
	one := llm.Response{Parts: []llm.Part{p}}
	for _, d := range one.Deltas() {
		d.Index = last + 1
		a.Add(d)
	}
}
