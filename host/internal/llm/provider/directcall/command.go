// Package directcall replaces the model if there is no model: each typed line is a call, and
// its results are the answer.
//
//	grep pattern=TODO path=src
//	/grep {"pattern":"TODO","path":"src"}
//	view README.md
//
// The tool's schema decides how values are read; quotes keep words together. Words without =
// are the required arguments in order. A line that is not a call gets a list of the tools.
package directcall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/toolargs"
)

// Name is the model's.
const Name = "command"

// New returns the model. provider is the configured one it belongs to.
func New(provider string) provider.Model { return model{provider} }

type model struct{ provider string }

func (m model) Info() provider.Info { return provider.Info{Name: Name, Provider: m.provider} }

// Ask reads the last message.
func (m model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	if err := provider.Ended(ctx); err != nil {
		return nil, err
	}
	res := &llm.Response{Model: Name, Stop: llm.StopEnd, Usage: &llm.Usage{}, Parts: []llm.Part{answer(r)}}
	if res.Parts[0].Type == llm.Call {
		res.Stop = llm.StopCalls
	}
	if on != nil {
		for _, d := range res.Pieces() {
			on(d)
		}
	}
	return res, nil
}

func text(s string) llm.Part { return llm.Part{Type: llm.Text, Text: s} }

// answer is the call that the user typed, or what the calls came to.
func answer(r *llm.Request) llm.Part {
	if len(r.Messages) == 0 {
		return text(help(r))
	}
	last := r.Messages[len(r.Messages)-1]
	switch last.Role {
	case llm.ToolRole:
		return text(results(r.Messages))
	case llm.User:
		return typed(r, strings.TrimSpace(provider.TextOf(last.Parts)))
	}
	return text(help(r))
}

// results returns the results of the last calls as text.
func results(messages []llm.Message) string {
	first := len(messages)
	for first > 0 && messages[first-1].Role == llm.ToolRole {
		first--
	}
	var out []string
	for _, m := range messages[first:] {
		for _, p := range m.Parts {
			if p.ToolResult == nil {
				continue
			}
			said := provider.ResultText(p.ToolResult)
			switch {
			case said == "" && p.ToolResult.IsError:
				said = "it failed without an error text"
			case said == "":
				said = "(no output)"
			}
			out = append(out, said)
		}
	}
	return strings.Join(out, "\n\n")
}

// typed makes a call of a line.
func typed(r *llm.Request, line string) llm.Part {
	name, rest := line, ""
	if i := strings.IndexAny(line, " \t\r\n{"); i >= 0 {
		name, rest = line[:i], strings.TrimSpace(line[i:])
	}
	plain := strings.TrimPrefix(name, "/")
	i := slices.IndexFunc(r.Tools, func(t llm.Tool) bool { return t.Name == plain })
	switch {
	case plain == "" || plain == "help" && i < 0:
		return text(help(r))
	case i < 0:
		return text(fmt.Sprintf("unknown tool %q. ", short(plain)) + help(r))
	case r.Choice != nil && r.Choice.Mode == llm.None, r.Choice != nil && len(r.Choice.Names) > 0 && !slices.Contains(r.Choice.Names, plain):
		return text(plain + " cannot be called now.")
	}
	tool := r.Tools[i]
	args, err := arguments(tool, rest)
	if err != nil {
		return text(err.Error() + "\n" + usage(tool))
	}
	return llm.Part{Type: llm.Call, ToolCall: &llm.ToolCall{ID: provider.CallID(r.Messages, 0), Name: plain, Args: args}}
}

func arguments(t llm.Tool, rest string) (json.RawMessage, error) {
	if strings.HasPrefix(rest, "{") {
		return toolargs.Object(t.Input, []string{rest})
	}
	words, err := toolargs.Words(rest)
	if err != nil {
		return nil, err
	}
	_, required := members(t)
	for i, word := range words {
		if key, _, ok := strings.Cut(word, "="); ok && key != "" && !strings.ContainsAny(key, " \t\n") {
			continue
		}
		free := slices.IndexFunc(required, func(name string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") })
		})
		if free < 0 {
			return nil, fmt.Errorf("%q is not key=value", short(word))
		}
		words[i] = required[free] + "=" + word
	}
	return toolargs.Object(t.Input, words)
}

// members are the names of a tool's arguments, in order, and of those that are
// required.
func members(t llm.Tool) (all, required []string) {
	var schema struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(t.Input, &schema) != nil {
		return nil, nil
	}
	return provider.Names(schema.Properties), schema.Required
}

// usage says how a tool is called.
func usage(t llm.Tool) string {
	all, required := members(t)
	parts := []string{"usage: " + t.Name}
	for _, name := range all {
		if slices.Contains(required, name) {
			parts = append(parts, name+"=…")
		} else {
			parts = append(parts, "["+name+"=…]")
		}
	}
	return strings.Join(parts, " ")
}

// maxListed bounds how many tools help shows.
const maxListed = 40

// help says what can be typed.
func help(r *llm.Request) string {
	if len(r.Tools) == 0 {
		return "No model is configured: input lines are tool calls, but there are no tools."
	}
	lines := []string{"No model is configured: input lines are tool calls, NAME key=value or NAME {JSON}. Tools:", ""}
	for i, t := range r.Tools {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %d more", len(r.Tools)-maxListed))
			break
		}
		lines = append(lines, "  "+strings.TrimPrefix(usage(t), "usage: "))
	}
	return strings.Join(append(lines, "", "With OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY set, or an endpoint in models: of toolroom.yaml, a model answers."), "\n")
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
