package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/mcp"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// DurationMember is the member of a result (ToolResult.ExtraMembers) with the duration
// of the call in milliseconds.
const DurationMember = "duration_ms"

// maxShownArgumentBytes bounds the arguments that a failure repeats, in bytes.
const maxShownArgumentBytes = 500

// errorResult returns the result for a call that could not be made.
func errorResult(c *llm.ToolCall, err error, took time.Duration) *llm.ToolResult {
	said := string(toolerr.CodeOf(err)) + ": " + strings.ToValidUTF8(err.Error(), "\uFFFD")
	return &llm.ToolResult{
		ID: c.ID, Name: c.Name, IsError: true, ExtraMembers: durationMember(took),
		Content: []llm.Part{{Type: llm.TextPart, Text: failureText(c, "error: "+said, took)}},
	}
}

// durationMember returns the member of a result with the time that its call took, in
// milliseconds.
func durationMember(took time.Duration) []llm.Member {
	return []llm.Member{{Name: DurationMember, Value: strconv.AppendInt(nil, took.Milliseconds(), 10)}}
}

// failureText returns the text of a failure for the model: tool, arguments, message and
// duration.
func failureText(c *llm.ToolCall, message string, took time.Duration) string {
	arguments := canonicalArguments(c)
	if cut := textfmt.Head(arguments, maxShownArgumentBytes); cut != arguments {
		arguments = cut + "…"
	}
	return fmt.Sprintf("tool: %s\narguments: %s\n%s\nduration_ms: %d", c.Name, arguments, message, took.Milliseconds())
}

// modelResult converts the result of a call for the model. The texts of a failed call
// become one text that explains the failure, before its other parts.
func (r *run) modelResult(c *llm.ToolCall, res *call.Result, took time.Duration) *llm.ToolResult {
	result, _, err := mcp.DecodeResult(res.Raw, c.ID, c.Name)
	if err != nil {
		return errorResult(c, toolerr.New(toolerr.ResultInvalid, "%w", err), took)
	}
	result.ExtraMembers = append(result.ExtraMembers, durationMember(took)...)
	dropStructured(result)
	if result.IsError {
		var said []string
		result.Content = slices.DeleteFunc(result.Content, func(p llm.Part) bool {
			if p.Type == llm.TextPart {
				said = append(said, strings.TrimRight(p.Text, "\n"))
			}
			return p.Type == llm.TextPart
		})
		output := "output: nothing"
		if text := strings.Join(said, "\n"); text != "" {
			output = "output:\n" + text
		}
		result.Content = append([]llm.Part{{Type: llm.TextPart, Text: failureText(c, output, took)}}, result.Content...)
	}
	r.shortenLong(result)
	return result
}

// dropStructured removes the structured content of a result, which repeats the content for
// programs. If the content is empty, the structured content becomes its text.
func dropStructured(result *llm.ToolResult) {
	empty := !slices.ContainsFunc(result.Content, func(p llm.Part) bool { return p.Type != llm.TextPart || p.Text != "" })
	if empty && result.Structured != nil {
		result.Content = []llm.Part{{Type: llm.TextPart, Text: string(result.Structured)}}
	}
	result.Structured = nil
}

// shortenLong removes the middle of a result that takes more than a quarter of the
// model's context.
func (r *run) shortenLong(result *llm.ToolResult) {
	most := r.model.Info().Window / 4
	if most <= 0 {
		return
	}
	for i, p := range result.Content {
		// A text has at most as many tokens as bytes.
		if p.Type != llm.TextPart || len(p.Text) <= most {
			continue
		}
		n := r.cfg.Counter.Count(p.Text)
		if n <= most {
			continue
		}
		half := len(p.Text) / n * most / 2
		first, last := textfmt.Head(p.Text, half), textfmt.Tail(p.Text, half)
		result.Content[i].Text = fmt.Sprintf("%s\n[… %d bytes omitted, because the result has %d tokens; narrow the call to see them …]\n%s",
			first, len(p.Text)-len(first)-len(last), n, last)
	}
}
