// Upstream is the MCP server that the official conformance suite expects: its
// tools, resources and prompts under the names the suite calls them by, so
// that the suite can be run against a host with this server behind it. It
// speaks one or both protocol eras on its standard input and output, without
// any library, and in each era asks its client in that era's way.
//
//	upstream [-era both|legacy|modern]
package main

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

func main() {
	era := flag.String("era", "both", "both, legacy or modern")
	flag.Parse()
	s := &server{era: *era, asked: map[string]chan jsonrpc.Message{}}
	lines := jsonrpc.NewReader(os.Stdin, 0)
	for {
		line, err := lines.ReadLine()
		if err != nil {
			return
		}
		if m, err := jsonrpc.Split(line); err == nil {
			s.take(m)
		}
	}
}

// server is one run.
type server struct {
	era string

	out   sync.Mutex
	mu    sync.Mutex
	asked map[string]chan jsonrpc.Message // the server's own requests, by id
	last  int
	more  []string        // names of tools added at run time
	texts []string        // names of prompts added at run time
	lists json.RawMessage // id of the listen stream; nil: none
}

func (s *server) take(m jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Response:
		s.mu.Lock()
		if waiting := s.asked[string(m.ID)]; waiting != nil {
			waiting <- m
		}
		s.mu.Unlock()
	case jsonrpc.Request:
		c := s.newCall(m)
		switch m.Method {
		case "tools/call":
			go c.tool()
		case "prompts/get":
			go c.prompt()
		default:
			s.request(c)
		}
	}
}

// call is one request.
type call struct {
	s         *server
	id        json.RawMessage
	modern    bool
	Name      string                     `json:"name"`
	URI       string                     `json:"uri"`
	Arguments map[string]any             `json:"arguments"`
	Responses map[string]json.RawMessage `json:"inputResponses"`
	State     string                     `json:"requestState"`
	Meta      struct {
		Token    json.RawMessage            `json:"progressToken"`
		Version  string                     `json:"io.modelcontextprotocol/protocolVersion"`
		Caps     map[string]json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		LogLevel string                     `json:"io.modelcontextprotocol/logLevel"`
	} `json:"_meta"`
	method string
}

func (s *server) newCall(m jsonrpc.Message) *call {
	c := &call{s: s, id: m.ID, method: m.Method}
	if len(m.Params) > 0 && json.Unmarshal(m.Params, c) != nil {
		c.Name = "" // unknown, then
	}
	c.modern = c.Meta.Version != ""
	return c
}

const capabilities = `"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`

// request answers everything but tools and prompts.
func (s *server) request(c *call) {
	switch {
	case c.method == "initialize" && s.era != "modern":
		c.reply(`{"protocolVersion":"2025-11-25",` + capabilities + `,"serverInfo":{"name":"conformance-upstream","version":"1"}}`)
	case c.method == "server/discover" && s.era != "legacy":
		c.reply(`{"supportedVersions":["2026-07-28"],` + capabilities + `,"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"conformance-upstream","version":"1"}}}`)
	case c.method == "subscriptions/listen" && c.modern:
		s.mu.Lock()
		s.lists = c.id
		s.mu.Unlock()
		s.note("notifications/subscriptions/acknowledged", `{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(c.id)+`},"notifications":{}}`)
	case c.method == "ping" && !c.modern, c.method == "logging/setLevel" && !c.modern,
		strings.HasSuffix(c.method, "subscribe") && !c.modern:
		c.reply(`{}`)
	case c.method == "tools/list":
		c.list("tools", s.tools())
	case c.method == "resources/list":
		c.list("resources", resources)
	case c.method == "resources/templates/list":
		c.list("resourceTemplates", templates)
	case c.method == "prompts/list":
		c.list("prompts", s.prompts())
	case c.method == "resources/read":
		c.read()
	case c.method == "completion/complete":
		c.reply(c.complete(`{"completion":{"values":["paris","park","party"],"total":150,"hasMore":false}}`))
	default:
		c.fail(jsonrpc.CodeMethodNotFound, "no method "+c.method)
	}
}

// list answers a list request.
func (c *call) list(kind, items string) {
	result := `{"` + kind + `":[` + items + `]}`
	if c.modern {
		result = strings.TrimSuffix(result, "}") + `,"ttlMs":0,"cacheScope":"private"}`
	}
	c.reply(c.complete(result))
}

// complete is a result as the request's era wants it.
func (c *call) complete(result string) string {
	if c.modern {
		return strings.TrimSuffix(result, "}") + `,"resultType":"complete"}`
	}
	return result
}

func (c *call) reply(result string) {
	c.s.write(jsonrpc.AppendResult(nil, c.id, json.RawMessage(result)))
}

func (c *call) fail(code int, message string) {
	c.s.write(jsonrpc.AppendError(nil, c.id, code, message))
}

func (s *server) note(method, params string) {
	s.write(jsonrpc.AppendNotification(nil, method, json.RawMessage(params)))
}

// changed tells that a list has changed.
func (s *server) changed(kind string) {
	s.mu.Lock()
	params := `{}`
	if s.lists != nil {
		params = `{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(s.lists) + `}}`
	}
	s.mu.Unlock()
	s.note("notifications/"+kind+"/list_changed", params)
}

func (s *server) write(line []byte) {
	s.out.Lock()
	defer s.out.Unlock()
	os.Stdout.Write(append(line, '\n')) //nolint:errcheck // the host is gone
}
