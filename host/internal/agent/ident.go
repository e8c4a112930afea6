package agent

import (
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

// callIDs are the ids of the calls of a conversation.
type callIDs struct {
	taken map[string]bool
	n     int
}

func newIdents(messages []llm.Message) callIDs {
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

// maxID is the longest id that OpenAI takes.
const maxID = 40

// fits reports whether every vendor takes an id. Of which characters they are is
// Anthropic's to say.
func fits(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// own makes an id the conversation's: the model's, if nothing is wrong with it.
func (s *callIDs) own(id string) string {
	if s.taken[id] || !fits(id) {
		for s.n++; s.taken["call_"+strconv.Itoa(s.n)]; s.n++ {
		}
		id = "call_" + strconv.Itoa(s.n)
	}
	s.taken[id] = true
	return id
}
