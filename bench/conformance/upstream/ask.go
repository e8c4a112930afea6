package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// question is one for the client, under the key its answer comes back by.
type question struct{ key, method, params string }

func elicit(key, message, schema string) question {
	return question{key, "elicitation/create", `{"message":` + quote(message) + `,"requestedSchema":` + schema + `}`}
}

func sample(key, prompt string, tokens int) question {
	return question{key, "sampling/createMessage",
		`{"messages":[{"role":"user","content":{"type":"text","text":` + quote(prompt) + `}}],"maxTokens":` + strconv.Itoa(tokens) + `}`}
}

func askRoots(key string) question { return question{key, "roots/list", `{}`} }

// ask returns the client's answers: a legacy client is asked and waited for;
// of a modern one the answers have come along, or the call is answered that
// they are required, and ask reports false.
func (c *call) ask(state string, questions ...question) (map[string]json.RawMessage, bool) {
	answers := map[string]json.RawMessage{}
	if c.modern {
		missing := ""
		for _, q := range questions {
			if answer, ok := c.Responses[q.key]; ok && usable(q, answer) {
				answers[q.key] = answer
				continue
			}
			if missing != "" {
				missing += ","
			}
			missing += quote(q.key) + `:{"method":` + quote(q.method) + `,"params":` + q.params + `}`
		}
		if missing == "" {
			return answers, true
		}
		result := `{"resultType":"input_required","inputRequests":{` + missing + `}`
		if state != "" {
			result += `,"requestState":` + quote(sign(state))
		}
		c.reply(result + `}`)
		return nil, false
	}
	for _, q := range questions {
		m := c.s.inquire(q)
		if m.Error != nil && c.method != "tools/call" {
			c.fail(jsonrpc.CodeInternal, "refused: "+string(m.Error))
			return nil, false
		}
		if m.Error != nil {
			c.reply(`{"content":[{"type":"text","text":` + quote("refused: "+string(m.Error)) + `}],"isError":true}`)
			return nil, false
		}
		answers[q.key] = m.Result
	}
	return answers, true
}

// usable reports whether an answer has the form that its question asks for.
func usable(q question, answer json.RawMessage) bool {
	var a map[string]any
	if json.Unmarshal(answer, &a) != nil {
		return false
	}
	member := map[string]string{"elicitation/create": "action", "sampling/createMessage": "content", "roots/list": "roots"}[q.method]
	return a[member] != nil
}

// inquire sends a request to a legacy client and waits for its answer.
func (s *server) inquire(q question) jsonrpc.Message {
	s.mu.Lock()
	s.last++
	id := strconv.Itoa(s.last)
	waiting := make(chan jsonrpc.Message, 1)
	s.asked[id] = waiting
	s.mu.Unlock()
	s.write(jsonrpc.AppendRequest(nil, json.RawMessage(id), q.method, json.RawMessage(q.params)))
	m := <-waiting
	s.mu.Lock()
	delete(s.asked, id)
	s.mu.Unlock()
	return m
}

// key is no secret: what matters is that a changed state is noticed.
const key = "the fixture's key"

func sign(state string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(state))
	return state + "." + hex.EncodeToString(mac.Sum(nil))
}

// state returns what the client has brought back, and whether it is as it was.
func (c *call) state() (string, bool) {
	state, _, _ := strings.Cut(c.State, ".")
	return state, c.State == "" || sign(state) == c.State
}

func quote(s string) string { return string(jsonrpc.AppendString(nil, s)) }
