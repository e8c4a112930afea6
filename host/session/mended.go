package session

import "github.com/toolroom-mcp/toolroom/host/convert"

// Mended is a conversation in which every call has its result right after it, as models
// want it: several may have added to a session at once, and not everybody answers.
func Mended(messages []convert.Message) []convert.Message {
	results := map[string][]convert.Part{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				results[p.ToolResult.ID] = append(results[p.ToolResult.ID], p)
			}
		}
	}
	var out []convert.Message
	for _, m := range messages {
		if m.Role == convert.ToolRole {
			continue
		}
		out = append(out, m)
		var answers []convert.Part
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
			answers = append(answers, convert.Part{Type: convert.Result, ToolResult: &convert.ToolResult{
				ID: id, Name: p.ToolCall.Name, IsError: true,
				Content: []convert.Part{{Type: convert.Text, Text: "this call has no result"}},
			}})
		}
		if len(answers) > 0 {
			out = append(out, convert.Message{Role: convert.ToolRole, Parts: answers})
		}
	}
	return out
}
