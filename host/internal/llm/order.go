package llm

import "slices"

// SystemFirst returns the messages with the system and developer messages first, for
// vendors whose requests have one place for them. The order is otherwise kept. It adds a
// loss if it moved a message; messages itself is not changed.
func SystemFirst(messages []Message, losses *Losses) []Message {
	system := func(m Message) bool { return m.Role == SystemRole || m.Role == DeveloperRole }
	first := slices.IndexFunc(messages, func(m Message) bool { return !system(m) })
	if first < 0 || !slices.ContainsFunc(messages[first:], system) {
		return messages
	}
	out := slices.Clone(messages)
	slices.SortStableFunc(out, func(a, b Message) int {
		switch {
		case system(a) == system(b):
			return 0
		case system(a):
			return -1
		}
		return 1
	})
	losses.AddChanged("/messages", "system messages were moved to the front", asJSON(out))
	return out
}

// SortResults returns the messages with successive tool results in the order of their
// calls, for vendors that match results and calls by position. It adds a loss if it moved
// a result; messages itself is not changed.
func SortResults(messages []Message, losses *Losses) []Message {
	place, n := map[string]int{}, 0
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil {
				n++
				place[p.ToolCall.ID] = n
			}
		}
	}
	out, changed := slices.Clone(messages), false
	for i := 0; i < len(out); i++ {
		end := i
		var results []Part
		for end < len(out) && out[end].Role == ToolRole {
			results = append(results, out[end].Parts...)
			end++
		}
		if end == i {
			continue
		}
		at := func(p Part) int {
			if p.ToolResult == nil {
				return 0
			}
			return place[p.ToolResult.ID]
		}
		if !slices.IsSortedFunc(results, func(a, b Part) int { return at(a) - at(b) }) {
			slices.SortStableFunc(results, func(a, b Part) int { return at(a) - at(b) })
			changed = true
			for k := i; k < end; k++ {
				m := out[k]
				m.Parts, results = results[:len(m.Parts):len(m.Parts)], results[len(m.Parts):]
				out[k] = m
			}
		}
		i = end - 1
	}
	if changed {
		losses.AddEquivalent("/messages", "results were sorted in the order of their calls", asJSON(out))
	}
	return out
}
