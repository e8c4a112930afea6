package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ContextError returns CANCELLED or TIMEOUT if ctx has ended, otherwise nil.
func ContextError(ctx context.Context) error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return toolerr.New(toolerr.Timeout, "the model did not answer in time: %w", err)
	default:
		return toolerr.New(toolerr.Cancelled, "asking the model was cancelled: %w", err)
	}
}

// TextOf returns the texts of parts, separated by line feeds.
func TextOf(parts []llm.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type == llm.TextPart && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// ResultText returns the texts of a tool's result, separated by line feeds, with [image
// TYPE] for an image.
func ResultText(r *llm.ToolResult) string {
	var texts []string
	for _, p := range r.ModelContent("", "", &llm.Losses{}) {
		switch {
		case p.Type == llm.TextPart && p.Text != "":
			texts = append(texts, p.Text)
		case p.Type == llm.ImagePart && p.Media != nil:
			texts = append(texts, fmt.Sprintf("[image %s]", p.Media.Type()))
		}
	}
	return strings.Join(texts, "\n")
}

// CallID returns an ID for call n of the next turn. No call in messages has it, and it
// is the same in each run.
func CallID(messages []llm.Message, n int) string {
	turns, taken := 0, map[string]bool{}
	for _, m := range messages {
		if m.Role == llm.AssistantRole {
			turns++
		}
		for _, p := range m.Parts {
			if p.ToolCall != nil {
				taken[p.ToolCall.ID] = true
			}
		}
	}
	for ; ; turns++ {
		if id := fmt.Sprintf("call_%d_%d", turns, n); !taken[id] {
			return id
		}
	}
}

// MemberNames returns the names of an object's members in order.
func MemberNames(object json.RawMessage) []string {
	var names []string
	for _, m := range tree.Raw(object).PeekMembers() {
		names = append(names, m.Name)
	}
	return names
}
