package mcpkittest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Mock is an MCP server for tests of clients and hosts: a test sets the answers
// of its tools and its faults, and reads the calls that it received. It speaks
// the legacy versions of the protocol and, after Modern, also 2026-07-28, to
// any number of clients at the same time: over a pair of streams with Serve, as
// a child process with Command, over HTTP with ServeHTTP. It is safe for
// concurrent use.
//
// A fault is set for a tool's name, or for a method such as "initialize" or
// "tools/list"; it lasts until ClearFault, or for Fault.Times answers.
type Mock struct {
	name string

	mu           sync.Mutex
	tools        []*mockTool
	faults       map[string]*Fault
	calls        []*Call
	pageSize     int                    // tools in a page of tools/list; 0: all
	bearerToken  string                 // token that HTTP requests need; "": none
	noise        string                 // line before every answer; "": none
	modern       bool                   // also speak the modern era
	clients      map[*mockClient]bool   // clients that get notifications
	sessions     map[string]*mockClient // HTTP sessions by id, with their requests in flight
	sessionCount int                    // number of HTTP sessions so far
	arrived      chan struct{}          // closed and replaced when a call arrives
}

// mockTool is one tool of a Mock.
type mockTool struct {
	name       string
	definition json.RawMessage // its entry in tools/list
	result     json.RawMessage // the answer; nil: the arguments as text
}

// Call is one tool call as the mock received it.
type Call struct {
	Tool      string
	Arguments json.RawMessage // nil: none were sent
	Meta      json.RawMessage // nil: none was sent
	Cancelled bool            // the client cancelled it
}

// NewMock makes a mock without tools.
func NewMock(name string) *Mock {
	return &Mock{
		name: name, faults: map[string]*Fault{}, clients: map[*mockClient]bool{},
		sessions: map[string]*mockClient{}, arrived: make(chan struct{}),
	}
}

// AddTool adds a tool, or replaces the tool of that name. definition is the
// rest of its entry in tools/list, as JSON ({"description":…,"inputSchema":…});
// with "" the tool accepts any object. By default, the tool answers with its
// arguments as text. AddTool panics if definition is not a JSON object.
func (m *Mock) AddTool(name, definition string) {
	if definition == "" {
		definition = `{}`
	}
	raw := json.RawMessage(definition)
	var have map[string]json.RawMessage
	if err := json.Unmarshal(raw, &have); err != nil {
		panic(fmt.Sprintf("mock tool %s: its definition is no JSON object: %v", name, err))
	}
	set := func(member, value string) {
		var err error
		if raw, err = jsonrpc.SetMember(raw, member, json.RawMessage(value)); err != nil {
			panic(fmt.Sprintf("mock tool %s: %v", name, err))
		}
	}
	if have["inputSchema"] == nil {
		set("inputSchema", `{"type":"object"}`)
	}
	set("name", string(jsonrpc.AppendString(nil, name)))
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &mockTool{name: name, definition: raw}
	if i := m.indexOfTool(name); i >= 0 {
		m.tools[i] = t
		return
	}
	m.tools = append(m.tools, t)
}

// RemoveTool removes a tool, if there is one of that name. It does not notify
// clients: see NotifyListChanged.
func (m *Mock) RemoveTool(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.indexOfTool(name); i >= 0 {
		m.tools = slices.Delete(m.tools, i, i+1)
	}
}

// indexOfTool returns the index of a tool, or -1. Hold m.mu.
func (m *Mock) indexOfTool(name string) int {
	return slices.IndexFunc(m.tools, func(t *mockTool) bool { return t.name == name })
}

// SetResponse makes a tool answer with a text.
func (m *Mock) SetResponse(tool, text string) {
	m.SetResult(tool, json.RawMessage(`{"content":[{"type":"text","text":`+string(jsonrpc.AppendString(nil, text))+`}]}`))
}

// SetToolError makes a tool answer with a text and isError.
func (m *Mock) SetToolError(tool, text string) {
	m.SetResult(tool, json.RawMessage(`{"content":[{"type":"text","text":`+string(jsonrpc.AppendString(nil, text))+`}],"isError":true}`))
}

// SetResult makes a tool answer with a whole result, sent unchanged. It panics
// if there is no such tool.
func (m *Mock) SetResult(tool string, result json.RawMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.indexOfTool(tool)
	if i < 0 {
		panic("mock: there is no tool " + strconv.Quote(tool) + ": AddTool first")
	}
	m.tools[i].result = result
}

// SetNoiseLine sets a line, not a message, that is sent before every answer; "" sends
// none. It has no effect over HTTP, which cannot carry such a line.
func (m *Mock) SetNoiseLine(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noise = strings.ReplaceAll(line, "\n", " ")
}

// EnableModern makes the mock speak the modern era as well, except for subscriptions:
// NotifyListChanged does not reach modern clients.
func (m *Mock) EnableModern() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.modern = true
}

// SetPageSize sets the number of tools in a page of tools/list; 0: all.
func (m *Mock) SetPageSize(tools int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pageSize = tools
}

// RequireBearer makes the mock refuse HTTP requests without this token; ""
// requires none.
func (m *Mock) RequireBearer(token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bearerToken = token
}

// NotifyListChanged notifies all clients that the list of tools has changed.
func (m *Mock) NotifyListChanged() {
	m.mu.Lock()
	var all []*mockClient
	for c := range m.clients {
		all = append(all, c)
	}
	m.mu.Unlock()
	for _, c := range all {
		c.send(jsonrpc.AppendNotification(nil, "notifications/tools/list_changed", nil))
	}
}

// Calls returns copies of the received tool calls, in order.
func (m *Mock) Calls() []Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Call, 0, len(m.calls))
	for _, c := range m.calls {
		all = append(all, *c)
	}
	return all
}

// ForgetCalls empties the list of calls.
func (m *Mock) ForgetCalls() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = nil
}

// NextCall returns a channel that is closed when the next tool call arrives.
func (m *Mock) NextCall() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrived
}
