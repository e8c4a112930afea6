// Package directcall replaces the model if there is no model: each line that the
// user types is a tool call, and the results of the call are the answer.
//
//	grep pattern=TODO path=src
//	/grep {"pattern":"TODO","path":"src"}
//	view README.md
//
// The tool's schema determines the types of the values. Quotes join words. Words
// without = are the required arguments in order. A line that is not a call is
// answered with a list of the tools.
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

// Name is the model's name in requests.
const Name = "command"

// New returns the model. provider is the name of its configured provider.
func New(provider string) provider.Model { return model{provider} }

// A model returns the call in the user's last line, or the results of the last calls.
type model struct{ provider string }

// Info returns information about the model.
func (m model) Info() provider.Info { return provider.Info{Name: Name, Provider: m.provider} }

// Ask implements provider.Model: it answers a typed line with the call that it names, and
// results with their text. It returns an error only if ctx has ended.
func (m model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	if err := provider.ContextError(ctx); err != nil {
		return nil, err
	}
	res := &llm.Response{Model: Name, StopReason: llm.StopEnd, Usage: &llm.Usage{}, Parts: []llm.Part{nextPart(r)}}
	if res.Parts[0].Type == llm.CallPart {
		res.StopReason = llm.StopCalls
	}
	if on != nil {
		for _, d := range res.Deltas() {
			on(d)
		}
	}
	return res, nil
}

// textPart returns a text part.
func textPart(s string) llm.Part { return llm.Part{Type: llm.TextPart, Text: s} }

// nextPart returns the call that the user typed, or the results of the last calls.
func nextPart(r *llm.Request) llm.Part {
	if len(r.Messages) == 0 {
		return textPart(helpText(r))
	}
	last := r.Messages[len(r.Messages)-1]
	switch last.Role {
	case llm.ToolRole:
		return textPart(resultsText(r.Messages))
	case llm.UserRole:
		return parseLine(r, strings.TrimSpace(provider.TextOf(last.Parts)))
	}
	return textPart(helpText(r))
}

// resultsText returns the texts of the results of the last calls.
func resultsText(messages []llm.Message) string {
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

// parseLine parses a typed line as a call. If the line is not a call, it returns a
// list of the tools.
func parseLine(r *llm.Request, line string) llm.Part {
	name, rest := line, ""
	if i := strings.IndexAny(line, " \t\r\n{"); i >= 0 {
		name, rest = line[:i], strings.TrimSpace(line[i:])
	}
	plain := strings.TrimPrefix(name, "/")
	i := slices.IndexFunc(r.Tools, func(t llm.Tool) bool { return t.Name == plain })
	switch {
	case plain == "" || plain == "help" && i < 0:
		return textPart(helpText(r))
	case i < 0:
		return textPart(fmt.Sprintf("unknown tool %q. ", shortDescription(plain)) + helpText(r))
	case r.Choice != nil && r.Choice.Mode == llm.ChoiceNone, r.Choice != nil && len(r.Choice.ToolNames) > 0 && !slices.Contains(r.Choice.ToolNames, plain):
		return textPart(plain + " cannot be called now.")
	}
	tool := r.Tools[i]
	args, err := parseArguments(tool, rest)
	if err != nil {
		return textPart(err.Error() + "\n" + usageText(tool))
	}
	return llm.Part{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: provider.CallID(r.Messages, 0), Name: plain, Args: args}}
}

// parseArguments returns the arguments in the text after a tool's name: a JSON object, or
// words, of which those without a name are the required arguments in order. It returns an
// error for a word without name beyond these, and the errors of toolargs.Parse.
func parseArguments(t llm.Tool, rest string) (json.RawMessage, error) {
	if strings.HasPrefix(rest, "{") {
		return toolargs.Parse(t.Input, []string{rest})
	}
	words, err := toolargs.SplitWords(rest)
	if err != nil {
		return nil, err
	}
	_, required := argumentNames(t)
	for i, word := range words {
		if key, _, ok := strings.Cut(word, "="); ok && key != "" && !strings.ContainsAny(key, " \t\n") {
			continue
		}
		free := slices.IndexFunc(required, func(name string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") })
		})
		if free < 0 {
			return nil, fmt.Errorf("%q is not key=value", shortDescription(word))
		}
		words[i] = required[free] + "=" + word
	}
	return toolargs.Parse(t.Input, words)
}

// argumentNames returns the names of a tool's arguments and of the required arguments,
// each in order.
func argumentNames(t llm.Tool) (all, required []string) {
	var schema struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(t.Input, &schema) != nil {
		return nil, nil
	}
	return provider.MemberNames(schema.Properties), schema.Required
}

// usageText returns an example of a call of the tool.
func usageText(t llm.Tool) string {
	all, required := argumentNames(t)
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

// maxListed bounds the tools that helpText lists.
const maxListed = 40

// helpText returns the syntax of calls and the list of the tools.
func helpText(r *llm.Request) string {
	if len(r.Tools) == 0 {
		return "No model is configured: input lines are tool calls, but there are no tools."
	}
	lines := []string{"No model is configured: input lines are tool calls, NAME key=value or NAME {JSON}. Tools:", ""}
	for i, t := range r.Tools {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %d more", len(r.Tools)-maxListed))
			break
		}
		lines = append(lines, "  "+strings.TrimPrefix(usageText(t), "usage: "))
	}
	return strings.Join(append(lines, "", "With OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY set, or an endpoint in models: of toolroom.yaml, a model answers."), "\n")
}

// shortDescription returns at most 60 characters of a text, and … after them if it was
// longer.
func shortDescription(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
