package contextbudget

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
)

// A result that is shorter is left alone, and so much of a longer one is kept.
const (
	shortResult = 100 // tokens
	headRunes   = 160
)

// Compact cuts the results of tools to their beginnings, but for the last
// keep, and returns how many it cut. Every result keeps its place, its call's
// id and whether it is an error. The messages that it is given stay as they
// are.
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
			if size <= shortResult || Compacted(p.ToolResult) {
				continue
			}
			short := *p.ToolResult
			short.Structured, short.Others = nil, nil
			short.Content = []llm.Part{{Type: llm.Text, Text: fmt.Sprintf("%s%d tokens; call the tool again to see all]\n%s", leftOut, size, head(p.ToolResult))}}
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

func isResult(p llm.Part) bool { return p.Type == llm.Result && p.ToolResult != nil }

const leftOut = "[old result, shortened from "

// Compacted reports whether a result has been cut before. A long one only says so.
func Compacted(r *llm.ToolResult) bool {
	return len(r.Content) == 1 && len(r.Content[0].Text) < 8*headRunes && strings.HasPrefix(r.Content[0].Text, leftOut)
}

// head is the beginning of a result's text.
func head(r *llm.ToolResult) string {
	for _, p := range r.Content {
		if p.Type != llm.Text || p.Text == "" {
			continue
		}
		n := 0
		for at := range p.Text {
			if n++; n > headRunes {
				return p.Text[:at] + "…"
			}
		}
		return p.Text
	}
	return ""
}
