package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A turn holds the parts of a request that the conditions of answers test.
type turn struct {
	request        *llm.Request
	message        string            // text of the last message if that is the user's
	results        []*llm.ToolResult // results of the last messages, if these are tool results
	system         string            // texts of all system messages
	turnsSinceUser int               // number of the model's messages since the last one of the user

	groups []string // groups that the pattern of the chosen answer matched
	result string   // the tool result that matched, or else the last one
}

// newTurn returns the turn that a request asks for.
func newTurn(r *llm.Request) *turn {
	s := &turn{request: r}
	names := llm.CallNames(r.Messages)
	end := len(r.Messages)
	for end > 0 && r.Messages[end-1].Role == llm.ToolRole {
		end--
	}
	for _, m := range r.Messages[end:] {
		for _, p := range m.Parts {
			if p.ToolResult == nil {
				continue
			}
			result := *p.ToolResult
			if result.Name == "" {
				result.Name = names[result.ID]
			}
			s.results = append(s.results, &result)
			s.result = provider.ResultText(&result)
		}
	}
	if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == llm.UserRole {
		s.message = provider.TextOf(r.Messages[last].Parts)
	}
	for _, m := range r.Messages {
		switch m.Role {
		case llm.SystemRole, llm.DeveloperRole:
			s.system += provider.TextOf(m.Parts) + "\n"
		case llm.UserRole:
			s.turnsSinceUser = 0
		case llm.AssistantRole:
			s.turnsSinceUser++
		}
	}
	return s
}

// String describes the request, for the error that no answer matches.
func (s *turn) String() string {
	cut := func(text string) string {
		if r := []rune(text); len(r) > 200 {
			return string(r[:200]) + "…"
		}
		return text
	}
	if len(s.results) > 0 {
		last := s.results[len(s.results)-1]
		return fmt.Sprintf("turn %d, results of tools, the last one of %s: %q", s.turnsSinceUser, last.Name, cut(s.result))
	}
	return fmt.Sprintf("turn %d, message %q", s.turnsSinceUser, cut(s.message))
}

// chooseAnswer returns the first answer of the script that matches, in a sequence the
// one for this turn, and counts its use; nil: none matches.
func (m *Model) chooseAnswer(s *turn) *Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.script.Answers {
		a := &m.script.Answers[i]
		if a.Times > 0 && m.timesGiven[a] >= a.Times || !a.When.matches(s) {
			continue
		}
		m.timesGiven[a]++
		for len(a.Answers) > 0 {
			a = &a.Answers[min(s.turnsSinceUser, len(a.Answers)-1)]
		}
		return a
	}
	return nil
}

// matches reports whether all conditions hold. It stores the matched groups and result
// in s.
func (w When) matches(s *turn) bool {
	s.groups = nil
	switch {
	case w.Turn != nil && *w.Turn != s.turnsSinceUser,
		w.Tools != nil && *w.Tools != (len(s.request.Tools) > 0),
		w.Model != nil && !w.Model.MatchString(s.request.Model),
		w.System != nil && !w.System.MatchString(s.system):
		return false
	}
	if w.Message != nil {
		if len(s.results) > 0 || s.message == "" {
			return false
		}
		if s.groups = w.Message.FindStringSubmatch(s.message); s.groups == nil {
			return false
		}
	}
	if w.Result == nil && w.Tool == "" && w.IsError == nil {
		return true
	}
	for _, r := range s.results {
		if w.Tool != "" {
			if ok, err := path.Match(w.Tool, r.Name); err != nil || !ok {
				continue
			}
		}
		if w.IsError != nil && *w.IsError != r.IsError {
			continue
		}
		text := provider.ResultText(r)
		if w.Result != nil {
			groups := w.Result.FindStringSubmatch(text)
			if groups == nil {
				continue
			}
			s.groups = groups
		}
		s.result = text
		return true
	}
	return false
}

// placeholderPattern matches {{message}}, {{result}} and {{NUMBER}}.
var placeholderPattern = lazyregexp.New(`\{\{(message|result|\d+)\}\}`)

// expand returns the text with its placeholders replaced.
func (s *turn) expand(text string) string {
	return placeholderPattern().ReplaceAllStringFunc(text, func(found string) string {
		switch name := strings.Trim(found, "{}"); name {
		case "message":
			return s.message
		case "result":
			return s.result
		default:
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(s.groups) {
				return ""
			}
			return s.groups[n]
		}
	})
}

// expandArgs returns the arguments with the placeholders in all strings replaced; {}
// for none.
func (s *turn) expandArgs(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage(`{}`)
	}
	if !placeholderPattern().Match(args) {
		return args
	}
	v := tree.Raw(args).Clone()
	s.expandTree(v)
	return v.JSON()
}

// expandTree replaces the placeholders in all strings of a value, in place.
func (s *turn) expandTree(v *tree.Value) {
	if v.Is(tree.String) {
		v.Text = s.expand(v.Text)
	}
	for _, item := range v.Items {
		s.expandTree(item)
	}
	for _, m := range v.Members {
		s.expandTree(m.Value)
	}
}

// response returns the answer as the response of the model to s.
func (a *Answer) response(model string, s *turn) *llm.Response {
	r := &llm.Response{Model: model, StopReason: a.Stop, Usage: a.Usage}
	add := func(kind llm.PartType, text string) {
		if text != "" {
			r.Parts = append(r.Parts, llm.Part{Type: kind, Text: s.expand(text)})
		}
	}
	add(llm.ThinkingPart, a.Thinking)
	add(llm.TextPart, a.Text)
	add(llm.RefusalPart, a.Refusal)
	for i, c := range a.Calls {
		made := &llm.ToolCall{ID: s.expand(c.ID), Name: s.expand(c.Name), Malformed: c.Raw}
		if made.ID == "" {
			made.ID = provider.CallID(s.request.Messages, i)
		}
		if c.Raw == "" {
			made.Args = s.expandArgs(c.Args)
		}
		r.Parts = append(r.Parts, llm.Part{Type: llm.CallPart, ToolCall: made})
	}
	if r.StopReason == "" {
		switch {
		case len(a.Calls) > 0:
			r.StopReason = llm.StopCalls
		case a.Refusal != "":
			r.StopReason = llm.StopRefusal
		default:
			r.StopReason = llm.StopEnd
		}
	}
	if r.Usage == nil {
		r.Usage = estimateUsage(s.request, r)
	}
	return r
}

// estimateUsage returns an estimate of the usage that a model would report.
func estimateUsage(r *llm.Request, res *llm.Response) *llm.Usage {
	asked, err := json.Marshal(r.Messages)
	tools, err2 := json.Marshal(r.Tools)
	answered, err3 := json.Marshal(res.Parts)
	if err != nil || err2 != nil || err3 != nil {
		return &llm.Usage{}
	}
	return &llm.Usage{Input: tokens.EstimateJSON(asked) + tokens.EstimateJSON(tools), Output: tokens.EstimateJSON(answered)}
}

// pieceSize is the approximate length of a streamed piece, in bytes.
const pieceSize = 12

// streamResponse passes a response to on, unless that is nil, in pieces, and returns
// it. With fails, it returns that error after fails.After pieces, with the partial
// response.
func streamResponse(ctx context.Context, res *llm.Response, fails *Failure, on func(llm.Delta)) (*llm.Response, error) {
	var s llm.ResponseBuilder
	n := 0
	failed := func() bool { return fails != nil && n >= fails.After }
	for _, whole := range res.Deltas() {
		for _, d := range splitDelta(whole) {
			if err := provider.ContextError(ctx); err != nil {
				return partialResponse(&s, res), err
			}
			if failed() {
				break
			}
			n++
			s.Add(d)
			if on != nil {
				on(d)
			}
		}
	}
	if fails != nil {
		text := fails.Message
		if text == "" {
			text = "as scripted"
		}
		err := toolerr.New(fails.Code, "%s", text)
		if fails.After == 0 {
			return nil, err
		}
		return partialResponse(&s, res), err
	}
	return res, nil
}

// partialResponse returns the part of an answer that was streamed before a failure.
func partialResponse(s *llm.ResponseBuilder, res *llm.Response) *llm.Response {
	s.FinishCalls()
	s.Response.Model = res.Model
	if len(s.Response.Parts) == 0 {
		return nil
	}
	return &s.Response
}

// splitDelta splits the text or arguments of a delta into pieces of about pieceSize bytes,
// between characters.
func splitDelta(d llm.Delta) []llm.Delta {
	if len(d.Text)+len(d.Args) <= pieceSize || d.Part != nil {
		return []llm.Delta{d}
	}
	var pieces []llm.Delta
	for _, text := range chunks(d.Text) {
		pieces = append(pieces, llm.Delta{Index: d.Index, Type: d.Type, Text: text})
	}
	for _, args := range chunks(d.Args) {
		pieces = append(pieces, llm.Delta{Index: d.Index, Type: d.Type, Args: args})
	}
	pieces[0].ID, pieces[0].Name = d.ID, d.Name
	pieces[len(pieces)-1].Signature = d.Signature
	return pieces
}

// chunks returns a text in pieces of about pieceSize bytes, not cut inside a character.
func chunks(text string) []string {
	var all []string
	begin := 0
	for i := range text {
		if i-begin >= pieceSize {
			all = append(all, text[begin:i])
			begin = i
		}
	}
	if begin < len(text) {
		all = append(all, text[begin:])
	}
	return all
}
