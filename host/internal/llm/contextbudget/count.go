package contextbudget

import (
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
)

// Approximate tokens of content that is not text: the structure of a message, and an
// image, which vendors count by its size.
const (
	frameTokens = 4
	imageTokens = 1100
)

// messageTokens returns the tokens of the system messages and of all other messages.
func messageTokens(counter tokens.Counter, messages []llm.Message) (system, others int) {
	for _, m := range messages {
		n := frameTokens + counter.Count(m.Name)
		for _, p := range m.Parts {
			n += partTokens(counter, p)
		}
		if m.Role == llm.SystemRole || m.Role == llm.DeveloperRole {
			system += n
		} else {
			others += n
		}
	}
	return system, others
}

// MessageTokens returns the tokens of all messages.
func MessageTokens(counter tokens.Counter, messages []llm.Message) int {
	system, others := messageTokens(counter, messages)
	return system + others
}

// partTokens returns the tokens of a part.
func partTokens(counter tokens.Counter, p llm.Part) int {
	n := counter.Count(p.Text) + counter.Count(string(p.Raw))
	if p.Media != nil {
		n += imageTokens
	}
	if p.Signature != nil {
		n += counter.Count(p.Signature.Value)
	}
	if c := p.ToolCall; c != nil {
		n += frameTokens + counter.Count(c.ID) + counter.Count(c.Name) + counter.Count(string(c.Args)) + counter.Count(c.Malformed)
	}
	if r := p.ToolResult; r != nil {
		n += frameTokens + counter.Count(r.ID)
		text := false
		for _, part := range r.Content {
			text = true
			n += partTokens(counter, part)
		}
		if !text { // without text, the model gets the structured content
			n += counter.Count(string(r.Structured))
		}
	}
	return n
}

// definitionTokens returns the tokens of a definition in MCP's format, assumedDefinitionTokens if
// it has neither description nor schema; other vendors' formats contain the same texts.
func definitionTokens(counter tokens.Counter, t llm.Tool) int {
	if t.Description == "" && len(t.Input) == 0 {
		return assumedDefinitionTokens
	}
	return frameTokens + counter.Count(t.Name) + counter.Count(t.Description) + counter.Count(string(t.Input))
}
