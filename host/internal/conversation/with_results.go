package conversation

import "github.com/toolroom-mcp/toolroom/host/internal/llm"

// WithResults returns the conversation with the results of each call directly after it, as
// models require: concurrent requests can have added to a session. A call without a result
// gets one that says so; a result without a call is left out.
func WithResults(messages []llm.Message) []llm.Message {
	results := map[string][]llm.Part{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				results[p.ToolResult.ID] = append(results[p.ToolResult.ID], p)
			}
		}
	}
	var out []llm.Message
	for _, m := range messages {
		if m.Role == llm.ToolRole {
			continue
		}
		out = append(out, m)
		var answers []llm.Part
		for _, p := range m.Parts {
			if p.ToolCall == nil {
				continue
			}
			id := p.ToolCall.ID
			if len(results[id]) > 0 {
				answers = append(answers, results[id][0])
				results[id] = results[id][1:]
				continue
			}
			answers = append(answers, llm.Part{Type: llm.ResultPart, ToolResult: &llm.ToolResult{
				ID: id, Name: p.ToolCall.Name, IsError: true,
				Content: []llm.Part{{Type: llm.TextPart, Text: "this call has no result"}},
			}})
		}
		if len(answers) > 0 {
			out = append(out, llm.Message{Role: llm.ToolRole, Parts: answers})
		}
	}
	return out
}
