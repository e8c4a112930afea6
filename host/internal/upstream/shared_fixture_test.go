package upstream_test

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// talkerArg starts a test binary as a server that talks to its clients: each tool sends
// the messages of its name, with the argument text in them.
const talkerArg = "talker-server"

type talker struct {
	mu    sync.Mutex
	asked map[string]chan json.RawMessage
	n     int
	lists int // lists of tools so far
	roots string
}

func (s *talker) write(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	os.Stdout.Write(append(message, '\n')) //nolint:errcheck // the host is gone
}

func (s *talker) tell(method, format string, args ...any) {
	s.write(jsonrpc.AppendNotification(nil, method, fmt.Appendf(nil, format, args...)))
}

// ask sends a request and returns the result or error.
func (s *talker) ask(method string, params json.RawMessage) string {
	return string(<-s.begin(method, params))
}

func (s *talker) begin(method string, params json.RawMessage) <-chan json.RawMessage {
	answer := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.n++
	id := fmt.Sprintf(`"ask-%d"`, s.n)
	if s.asked == nil {
		s.asked = map[string]chan json.RawMessage{}
	}
	s.asked[id] = answer
	s.mu.Unlock()
	s.write(jsonrpc.AppendRequest(nil, json.RawMessage(id), method, params))
	return answer
}

func runTalker() int {
	s := &talker{}
	in := jsonrpc.NewReader(os.Stdin, 0)
	for {
		line, err := in.ReadLine()
		if err != nil {
			return 0
		}
		m, err := jsonrpc.Split(line)
		if err != nil {
			return 1
		}
		switch m.Kind {
		case jsonrpc.Notification:
			if m.Method == "notifications/initialized" && len(os.Args) > 2 { // it asks for roots once, as some servers do
				answer := s.begin("roots/list", nil)
				go func() {
					roots := string(<-answer)
					s.mu.Lock()
					s.roots = roots
					s.mu.Unlock()
				}()
			}
		case jsonrpc.Request:
			go s.answer(m)
		case jsonrpc.Response:
			s.mu.Lock()
			answer := s.asked[string(m.ID)]
			s.mu.Unlock()
			if m.Error != nil {
				answer <- m.Error
			} else {
				answer <- m.Result
			}
		}
	}
}

func (s *talker) answer(m jsonrpc.Message) {
	result := json.RawMessage(`{}`)
	switch m.Method {
	case "initialize":
		result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"talker","version":"1"}}`)
	case "tools/list":
		s.mu.Lock()
		s.lists++
		result = fmt.Appendf(nil, `{"tools":[{"name":"echo","description":"list %d","inputSchema":{"type":"object"}}]}`, s.lists)
		s.mu.Unlock()
	case "tools/call":
		result = s.call(m)
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
	default:
		s.write(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, "unknown method"))
		return
	}
	s.write(jsonrpc.AppendResult(nil, m.ID, result))
}

func (s *talker) call(m jsonrpc.Message) json.RawMessage {
	var p struct {
		Name      string `json:"name"`
		Arguments struct {
			Text string `json:"text"`
			N    int    `json:"n"`
		} `json:"arguments"`
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return json.RawMessage(`{"isError":true,"content":[]}`)
	}
	said := p.Arguments.Text
	switch p.Name {
	case "elicit":
		said = s.ask("elicitation/create", fmt.Appendf(nil, `{"message":%q,"requestedSchema":{"type":"object","properties":{}}}`, said))
	case "elicit_for": // names its request, as servers made with mcpkit do
		said = s.ask("elicitation/create", fmt.Appendf(nil, `{"message":%q,"requestedSchema":{"type":"object","properties":{}},"_meta":{"toolroom/request":%s}}`, said, m.ID))
	case "url":
		s.ask("elicitation/create", fmt.Appendf(nil, `{"mode":"url","message":%[1]q,"url":"https://example.com/","elicitationId":%[1]q}`, said))
	case "complete":
		s.tell("notifications/elicitation/complete", `{"elicitationId":%q}`, said)
	case "log":
		s.tell("notifications/message", `{"level":"error","data":%q}`, said)
	case "log_later":
		go func() {
			time.Sleep(time.Duration(p.Arguments.N) * time.Millisecond)
			s.tell("notifications/message", `{"level":"error","data":%q}`, said)
		}()
	case "touch":
		s.tell("notifications/resources/updated", `{"uri":%q}`, said)
	case "progress":
		s.tell("notifications/progress", `{"progressToken":%s,"progress":1,"message":%q}`, p.Meta.ProgressToken, said)
	case "changed":
		s.tell("notifications/tools/list_changed", `{}`)
	case "first_roots":
		s.mu.Lock()
		said = s.roots
		s.mu.Unlock()
	case "roots":
		said = s.ask("roots/list", nil)
	case "sleep":
		time.Sleep(time.Duration(p.Arguments.N) * time.Millisecond)
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, text)
}
