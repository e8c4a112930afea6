package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// scene holds the parts of a request by which an answer is chosen.
type scene struct {
	request *llm.Request
	message string // of the user, where that is the last one
	results []*llm.ToolResult
	system  string
	turn    int

	groups []string // what the answer's pattern matched
	result string   // the one it matched, or the last
}

func sceneOf(r *llm.Request) *scene {
	s := &scene{request: r}
	names := llm.CalledNames(r.Messages)
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
	if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == llm.User {
		s.message = provider.TextOf(r.Messages[last].Parts)
	}
	for _, m := range r.Messages {
		switch m.Role {
		case llm.System, llm.Developer:
			s.system += provider.TextOf(m.Parts) + "\n"
		case llm.User:
			s.turn = 0
		case llm.Assistant:
			s.turn++
		}
	}
	return s
}

// String tells what was asked, for who wonders why nothing matches.
func (s *scene) String() string {
	cut := func(text string) string {
		if r := []rune(text); len(r) > 200 {
			return string(r[:200]) + "…"
		}
		return text
	}
	if len(s.results) > 0 {
		last := s.results[len(s.results)-1]
		return fmt.Sprintf("turn %d, results of tools, the last one of %s: %q", s.turn, last.Name, cut(s.result))
	}
	return fmt.Sprintf("turn %d, message %q", s.turn, cut(s.message))
}

// pick takes the first answer that matches; nil: none does.
func (m *Model) pick(s *scene) *Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.script.Answers {
		a := &m.script.Answers[i]
		if a.Times > 0 && m.given[a] >= a.Times || !a.When.matches(s) {
			continue
		}
		m.given[a]++
		for len(a.Answers) > 0 {
			a = &a.Answers[min(s.turn, len(a.Answers)-1)]
		}
		return a
	}
	return nil
}

// matches reports whether all conditions hold, and stores the matched groups.
func (w When) matches(s *scene) bool {
	s.groups = nil
	switch {
	case w.Turn != nil && *w.Turn != s.turn,
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

var placeholder = regexp.MustCompile(`\{\{(message|result|\d+)\}\}`)

// fill replaces the placeholders for matched groups.
func (s *scene) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
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

// fillArgs does so in the texts of arguments.
func (s *scene) fillArgs(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage(`{}`)
	}
	if !placeholder.Match(args) {
		return args
	}
	v := tree.Raw(args).Clone()
	s.fillTree(v)
	return v.JSON()
}

func (s *scene) fillTree(v *tree.Value) {
	if v.Is(tree.String) {
		v.Text = s.fill(v.Text)
	}
	for _, item := range v.Items {
		s.fillTree(item)
	}
	for _, m := range v.Members {
		s.fillTree(m.Value)
	}
}

// response returns the response for a request.
func (a *Answer) response(model string, s *scene) *llm.Response {
	r := &llm.Response{Model: model, Stop: a.Stop, Usage: a.Usage}
	add := func(kind llm.PartType, text string) {
		if text != "" {
			r.Parts = append(r.Parts, llm.Part{Type: kind, Text: s.fill(text)})
		}
	}
	add(llm.Thinking, a.Thinking)
	add(llm.Text, a.Text)
	add(llm.Refusal, a.Refusal)
	for i, c := range a.Calls {
		made := &llm.ToolCall{ID: s.fill(c.ID), Name: s.fill(c.Name), Malformed: c.Raw}
		if made.ID == "" {
			made.ID = provider.CallID(s.request.Messages, i)
		}
		if c.Raw == "" {
			made.Args = s.fillArgs(c.Args)
		}
		r.Parts = append(r.Parts, llm.Part{Type: llm.Call, ToolCall: made})
	}
	if r.Stop == "" {
		switch {
		case len(a.Calls) > 0:
			r.Stop = llm.StopCalls
		case a.Refusal != "":
			r.Stop = llm.StopRefusal
		default:
			r.Stop = llm.StopEnd
		}
	}
	if r.Usage == nil {
		r.Usage = counted(s.request, r)
	}
	return r
}

// counted returns an estimate of the tokens that a model would report.
func counted(r *llm.Request, res *llm.Response) *llm.Usage {
	asked, err := json.Marshal(r.Messages)
	tools, err2 := json.Marshal(r.Tools)
	answered, err3 := json.Marshal(res.Parts)
	if err != nil || err2 != nil || err3 != nil {
		return &llm.Usage{}
	}
	return &llm.Usage{Input: tokens.EstimateJSON(asked) + tokens.EstimateJSON(tools), Output: tokens.EstimateJSON(answered)}
}

// pieceSize is about how long a piece of an answer is.
const pieceSize = 12

// give gives an answer in pieces, and fails where that is wanted.
func give(ctx context.Context, res *llm.Response, fails *Failure, on func(llm.Delta)) (*llm.Response, error) {
	var s llm.Stream
	n := 0
	failed := func() bool { return fails != nil && n >= fails.After }
	for _, whole := range res.Pieces() {
		for _, d := range cut(whole) {
			if err := provider.Ended(ctx); err != nil {
				return partly(&s, res), err
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
		return partly(&s, res), err
	}
	return res, nil
}

// partly returns the received part of an answer.
func partly(s *llm.Stream, res *llm.Response) *llm.Response {
	s.Calls()
	s.Response.Model = res.Model
	if len(s.Response.Parts) == 0 {
		return nil
	}
	return &s.Response
}

// cut makes several pieces of one, between characters.
func cut(d llm.Delta) []llm.Delta {
	if len(d.Text)+len(d.Args) <= pieceSize || d.Whole != nil {
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
