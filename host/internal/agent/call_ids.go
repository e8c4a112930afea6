package agent

import (
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

// callIDs holds the ids of the calls of a conversation.
type callIDs struct {
	taken map[string]bool
	n     int
}

// newCallIDs returns the callIDs of a conversation that has these messages.
func newCallIDs(messages []llm.Message) callIDs {
	ids := callIDs{taken: map[string]bool{}}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil {
				ids.taken[p.ToolCall.ID] = true
			}
		}
	}
	return ids
}

// maxID is the longest id that OpenAI accepts.
const maxID = 40

// isValidID reports whether every vendor accepts an id. Anthropic has the strictest
// rule for characters.
func isValidID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// assign returns the id for a new call: the model's id if it is valid and unused.
func (s *callIDs) assign(id string) string {
	if s.taken[id] || !isValidID(id) {
		for s.n++; s.taken["call_"+strconv.Itoa(s.n)]; s.n++ {
		}
		id = "call_" + strconv.Itoa(s.n)
	}
	s.taken[id] = true
	return id
}
