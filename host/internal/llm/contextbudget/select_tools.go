package contextbudget

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/search"
)

// selectTools returns the indexes, in ascending order, of the tools that fit besides the
// tokens in spent: the required ones, even if they do not fit, and of the others as many
// as fit, best first. A tool that is too large is skipped for a smaller one.
func (f *fitting) selectTools(spent Usage) (kept []int) {
	n, room := 0, spent.Available()
	keep := func(i int) {
		kept, n, room = append(kept, i), n+1, room-f.costs[i]
	}
	for i := range f.input.Tools {
		if f.isRequired(i) {
			keep(i)
		}
	}
	for _, i := range f.toolsByRank() {
		if !f.isRequired(i) && f.costs[i] <= room && (f.cfg.MaxTools == 0 || n < f.cfg.MaxTools) {
			keep(i)
		}
	}
	slices.Sort(kept)
	return kept
}

// isRequired reports whether a tool may not be left out.
func (f *fitting) isRequired(i int) bool {
	t, choice := f.input.Tools[i], f.input.Request.Choice
	return t.Pinned || choice != nil && slices.Contains(choice.ToolNames, t.Name)
}

// toolsByRank returns the indexes of all tools, the best first: by priority, then the
// tool that was called last, then by relevance for the user's last text.
func (f *fitting) toolsByRank() []int {
	if f.ranks != nil {
		return f.ranks
	}
	messages := f.input.Request.Messages
	used := map[string]int{}
	for at, m := range messages {
		for _, p := range m.Parts {
			if p.Type == llm.CallPart && p.ToolCall != nil {
				used[p.ToolCall.Name] = at + 1
			}
		}
	}
	relevance := f.input.Relevance
	if relevance == nil {
		relevance = f.relevance
	}
	about := relevance(lastUserText(messages))
	score := func(i int) float64 {
		if i < len(about) {
			return about[i]
		}
		return 0
	}
	f.ranks = f.allTools()
	slices.SortStableFunc(f.ranks, func(a, b int) int {
		x, y := f.input.Tools[a], f.input.Tools[b]
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(used[y.Name], used[x.Name]), cmp.Compare(score(b), score(a)))
	})
	return f.ranks
}

// relevance returns the relevance of each tool for a text, computed from its name and
// description.
func (f *fitting) relevance(text string) []float64 {
	docs := make([]search.Doc, len(f.input.Tools))
	for i, t := range f.input.Tools {
		docs[i] = search.Doc{Name: t.Name, Text: t.Title + " " + t.Description}
	}
	scores := make([]float64, len(docs))
	for _, hit := range search.New(docs).Find(text, len(docs), nil) {
		scores[hit.Doc] = hit.Score
	}
	return scores
}

// lastUserText returns the text of the user's last message that has one; "": none.
func lastUserText(messages []llm.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role != llm.UserRole {
			continue
		}
		var text []string
		for _, p := range m.Parts {
			if p.Type == llm.TextPart {
				text = append(text, p.Text)
			}
		}
		if len(text) > 0 {
			return strings.Join(text, "\n")
		}
	}
	return ""
}
