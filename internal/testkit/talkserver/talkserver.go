// Package talkserver is an MCP server that talks to its clients, for tests of what reaches
// which client: each tool sends the messages of its name, with the argument text in them.
// It speaks the legacy era and records nothing about its clients.
package talkserver

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Arg is the first argument that makes a test binary call Main.
const Arg = "talker-server"

// tools are the names of the tools; calls of grow add more.
var tools = []string{
	"echo", "elicit", "elicit_for", "elicit_later", "url", "complete", "log", "log_later", "touch", "progress", "changed", "grow", "first_roots", "roots", "sleep", "count",
	"blob", "env",
}

// talker is the server with its only client.
type talker struct {
	mu    sync.Mutex
	asked map[string]chan json.RawMessage
	n     int
	lists int // lists of tools so far
	roots string
	count int      // calls of the tool count
	grown []string // tools that the tool grow has added
	later []string // questions that the server asks at the next call of sleep
}

func (s *talker) write(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	os.Stdout.Write(append(message, '\n')) //nolint:errcheck // the host is gone
}

func (s *talker) sendNotification(method, format string, args ...any) {
	s.write(jsonrpc.AppendNotification(nil, method, fmt.Appendf(nil, format, args...)))
}

// ask sends a request and returns the result or error.
func (s *talker) ask(method string, params json.RawMessage) string {
	return string(<-s.startRequest(method, params))
}

func (s *talker) startRequest(method string, params json.RawMessage) <-chan json.RawMessage {
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

// Main runs the server on standard input and output and returns the exit status. With
// askRoots it asks for the roots once the session is open, as some servers do.
func Main(askRoots bool) int {
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
			if m.Method == "notifications/initialized" && askRoots {
				answer := s.startRequest("roots/list", nil)
				go func() {
					roots := string(<-answer)
					s.mu.Lock()
					s.roots = roots
					s.mu.Unlock()
				}()
			}
		case jsonrpc.Request:
			go s.handleMessage(m)
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

func (s *talker) handleMessage(m jsonrpc.Message) {
	result := json.RawMessage(`{}`)
	switch m.Method {
	case "initialize":
		result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"talker","version":"1"}}`)
	case "tools/list":
		result = s.list()
	case "resources/list":
		result = json.RawMessage(`{"resources":[]}`)
	case "resources/templates/list": // TALK_SCHEME is the scheme of the resources that exist
		result = json.RawMessage(`{"resourceTemplates":[]}`)
		if scheme := os.Getenv("TALK_SCHEME"); scheme != "" {
			result = fmt.Appendf(nil, `{"resourceTemplates":[{"name":"all","uriTemplate":"%s://{name}"}]}`, scheme)
		}
	case "tools/call":
		result = s.call(m)
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
	default:
		s.write(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, "unknown method"))
		return
	}
	s.write(jsonrpc.AppendResult(nil, m.ID, result))
}

// list returns the tools. The first description has the number of lists so far. count says
// that it only reads, so that hosts may cache it.
func (s *talker) list() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	var all []string
	for i, name := range append(tools[:len(tools):len(tools)], s.grown...) {
		description, annotations := "sends "+name, `{}`
		if i == 0 {
			description = fmt.Sprintf("list %d", s.lists)
		}
		if name == "count" {
			annotations = `{"readOnlyHint":true}`
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"},"annotations":%s}`, name, description, annotations))
	}
	return json.RawMessage(`{"tools":[` + strings.Join(all, ",") + `]}`)
}

// elicit asks a question without naming a call, and returns the answer.
func (s *talker) elicit(question string) string {
	return s.ask("elicitation/create", fmt.Appendf(nil, `{"message":%q,"requestedSchema":{"type":"object","properties":{}}}`, question))
}

// askWaitingQuestions asks the questions that wait for a call of sleep.
func (s *talker) askWaitingQuestions() {
	s.mu.Lock()
	later := s.later
	s.later = nil
	s.mu.Unlock()
	for _, question := range later {
		go s.elicit(question)
	}
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
		said = s.elicit(said)
	case "elicit_for": // names its request, as servers made with mcpkit do
		said = s.ask("elicitation/create", fmt.Appendf(nil, `{"message":%q,"requestedSchema":{"type":"object","properties":{}},"_meta":{"toolroom/request":%s}}`, said, m.ID))
	case "elicit_later": // asks when it has answered, after n milliseconds; n < 0: at the next call of sleep
		if p.Arguments.N < 0 {
			s.mu.Lock()
			s.later = append(s.later, said)
			s.mu.Unlock()
			break
		}
		go func() {
			time.Sleep(time.Duration(p.Arguments.N) * time.Millisecond)
			s.elicit(said)
		}()
	case "url": // names its request, too
		s.ask("elicitation/create", fmt.Appendf(nil, `{"mode":"url","message":%[1]q,"url":"https://example.com/","elicitationId":%[1]q,"_meta":{"toolroom/request":%[2]s}}`, said, m.ID))
	case "complete":
		s.sendNotification("notifications/elicitation/complete", `{"elicitationId":%q}`, said)
	case "log":
		s.sendNotification("notifications/message", `{"level":"error","data":%q}`, said)
	case "log_later":
		go func() {
			time.Sleep(time.Duration(p.Arguments.N) * time.Millisecond)
			s.sendNotification("notifications/message", `{"level":"error","data":%q}`, said)
		}()
	case "touch":
		s.sendNotification("notifications/resources/updated", `{"uri":%q}`, said)
	case "progress":
		s.sendNotification("notifications/progress", `{"progressToken":%s,"progress":1,"message":%q}`, p.Meta.ProgressToken, said)
	case "count":
		s.mu.Lock()
		s.count++
		said = fmt.Sprintf("call %d", s.count)
		s.mu.Unlock()
	case "blob":
		said = strings.Repeat(said+"\n", p.Arguments.N)
	case "env":
		said = os.Getenv(said)
	case "grow":
		s.mu.Lock()
		s.grown = append(s.grown, said)
		s.mu.Unlock()
		s.sendNotification("notifications/tools/list_changed", `{}`)
	case "changed":
		s.sendNotification("notifications/tools/list_changed", `{}`)
	case "first_roots":
		s.mu.Lock()
		said = s.roots
		s.mu.Unlock()
	case "roots":
		said = s.ask("roots/list", nil)
	case "sleep":
		s.askWaitingQuestions()
		time.Sleep(time.Duration(p.Arguments.N) * time.Millisecond)
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, text)
}
