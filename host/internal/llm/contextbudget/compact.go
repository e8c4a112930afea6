package contextbudget

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
)

// The limits of shortening.
const (
	shortResultTokens = 100 // results of at most so many tokens are not shortened
	keptRunes         = 160 // characters that stay of a shortened result
)

// Compact shortens all tool results except the last keep ones to their beginnings, and
// returns the messages and the number of shortened results. Each result keeps its
// place, its call's ID and its error flag. The given messages are not changed.
func Compact(counter tokens.Counter, messages []llm.Message, keep int) ([]llm.Message, int) {
	results := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			if isResult(p) {
				results++
			}
		}
	}
	out, cut := slices.Clone(messages), 0
	for i, m := range messages {
		shared := true
		for j, p := range m.Parts {
			if !isResult(p) {
				continue
			}
			if results--; results < keep {
				return out, cut
			}
			size := partTokens(counter, p)
			if size <= shortResultTokens || IsCompacted(p.ToolResult) {
				continue
			}
			short := *p.ToolResult
			short.Structured, short.ExtraMembers = nil, nil
			short.Content = []llm.Part{{Type: llm.TextPart, Text: fmt.Sprintf("%s%d tokens; call the tool again to see all]\n%s", shortenedPrefix, size, resultBeginning(p.ToolResult))}}
			p.ToolResult = &short
			if partTokens(counter, p) >= size {
				continue
			}
			if shared {
				out[i].Parts, shared = slices.Clone(m.Parts), false
			}
			out[i].Parts[j] = p
			cut++
		}
	}
	return out, cut
}

// isResult reports whether a part is the result of a call.
func isResult(p llm.Part) bool { return p.Type == llm.ResultPart && p.ToolResult != nil }

const shortenedPrefix = "[old result, shortened from "

// IsCompacted reports whether a result was shortened before. It is false for a longer
// text that only begins like a shortened one.
func IsCompacted(r *llm.ToolResult) bool {
	return len(r.Content) == 1 && len(r.Content[0].Text) < 8*keptRunes && strings.HasPrefix(r.Content[0].Text, shortenedPrefix)
}

// resultBeginning returns the first keptRunes characters of a result's first text.
func resultBeginning(r *llm.ToolResult) string {
	for _, p := range r.Content {
		if p.Type != llm.TextPart || p.Text == "" {
			continue
		}
		n := 0
		for at := range p.Text {
			if n++; n > keptRunes {
				return p.Text[:at] + "…"
			}
		}
		return p.Text
	}
	return ""
}
