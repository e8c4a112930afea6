package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeResponse encodes the response of generateContent.
func EncodeResponse(r *llm.Response, o Options) (*tree.Value, llm.Losses) {
	e := &encoder{o: o, ids: map[string]string{}}
	parts := e.encodeParts(llm.Message{Role: llm.AssistantRole, Parts: r.Parts}, "/parts")
	if r.Created != 0 {
		e.losses.AddLost("/created", "Gemini has no field for it")
	}
	candidate := tree.Obj("content", tree.Obj("role", tree.Str("model"), "parts", tree.List(parts...)), "index", tree.Int(0))
	if word := e.finishReason(r); word != "" {
		candidate.Set("finishReason", tree.Str(word))
	}
	body := tree.Obj("candidates", tree.List(candidate))
	if u := r.Usage; u != nil {
		if u.CacheWrite > 0 {
			e.losses.AddLost("/usage/cache_write", "Gemini does not report it")
		}
		body.Set("usageMetadata", tree.Obj(
			"promptTokenCount", tree.Int(u.Input), "cachedContentTokenCount", tree.Int(u.CacheRead),
			"candidatesTokenCount", tree.Int(u.Output-u.Reasoning), "thoughtsTokenCount", tree.Int(u.Reasoning),
			"totalTokenCount", tree.Int(u.Input+u.Output)))
	}
	if r.Model != "" {
		body.Set("modelVersion", tree.Str(r.Model))
	}
	if r.ID != "" {
		body.Set("responseId", tree.Str(r.ID))
	}
	return body, e.losses
}

// finishReason returns Gemini's word for the reason why the answer ended, or "" if none
// is known. What Gemini cannot express is added to the losses.
func (e *encoder) finishReason(r *llm.Response) string {
	if r.Vendor == llm.Gemini && r.VendorStop != "" {
		return r.VendorStop
	}
	if r.MatchedStop != "" {
		e.losses.AddLost("/matched", "Gemini does not report the stop sequence")
	}
	if r.StopReason == "" {
		return ""
	}
	words := map[llm.StopReason]string{
		llm.StopLength: "MAX_TOKENS", llm.StopContext: "MAX_TOKENS", llm.StopRefusal: "SAFETY",
		llm.StopFault: "MALFORMED_FUNCTION_CALL", llm.StopOther: "OTHER",
	}
	word := words[r.StopReason]
	if word == "" {
		word = "STOP"
	}
	if now := StopReason(word, len(r.Calls()) > 0); now != r.StopReason {
		e.losses.AddChanged("/stop", "Gemini has no finish reason "+string(r.StopReason)+" here", tree.Str(string(now)))
	}
	return word
}

// StopReason returns the reason for a finishReason. called says that the turn called
// tools: Gemini reports no special reason for that.
func StopReason(word string, called bool) llm.StopReason {
	switch word {
	case "", "FINISH_REASON_UNSPECIFIED":
		return ""
	case "STOP":
		if called {
			return llm.StopCalls
		}
		return llm.StopEnd
	case "MAX_TOKENS":
		return llm.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
		"MODEL_ARMOR", "JAILBREAK":
		return llm.StopRefusal
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return llm.StopFault
	}
	return llm.StopOther
}

// DecodeResponse decodes the first candidate of a generateContent response. turn is
// the number of earlier contents; generated IDs of calls contain it.
func DecodeResponse(body json.RawMessage, turn int, o Options) (*llm.Response, llm.Losses, error) {
	v, err := tree.Parse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the response: %w", err)
	}
	d := &decoder{o: o, turn: turn}
	r := &llm.Response{
		ID:     v.Take("responseId").Str(),
		Model:  v.Take("modelVersion").Str(),
		Vendor: llm.Gemini,
		Usage:  DecodeUsage(v.Take("usageMetadata")),
	}
	candidates := v.Take("candidates").TakeItems()
	blocked := v.Take("promptFeedback").Take("blockReason").Str()
	switch {
	case len(candidates) > 0:
		candidates[0].Take("index").MarkAllRead()
		content := candidates[0].Take("content")
		content.Take("role").Str()
		r.Parts = d.decodeParts(content.Take("parts"))
		r.VendorStop = candidates[0].Take("finishReason").Str()
		r.StopReason = StopReason(r.VendorStop, len(r.Calls()) > 0)
	case blocked != "": // the prompt was refused
		r.StopReason, r.VendorStop = llm.StopRefusal, blocked
	default:
		return nil, nil, fmt.Errorf("the response has neither a candidate nor a blockReason")
	}
	var losses llm.Losses
	losses.AddUnread(v)
	return r, losses, nil
}

// DecodeUsage decodes the usage of a response or of a piece of a stream; nil: none.
func DecodeUsage(v *tree.Value) *llm.Usage {
	if !v.Is(tree.Object) {
		return nil
	}
	v.Take("totalTokenCount").Int()
	u := &llm.Usage{
		Input:     v.Take("promptTokenCount").Int() + v.Take("toolUsePromptTokenCount").Int(),
		CacheRead: v.Take("cachedContentTokenCount").Int(),
		Output:    v.Take("candidatesTokenCount").Int(),
		Reasoning: v.Take("thoughtsTokenCount").Int(),
	}
	u.Output += u.Reasoning
	return u
}
