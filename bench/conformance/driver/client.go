package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

const modernVersion = "2026-07-28"

// capabilities are the client capabilities of the driver: the kinds of requests it
// answers.
var capabilities = json.RawMessage(`{"elicitation":{"form":{}},"sampling":{},"roots":{}}`)

// message is a JSON-RPC message in either direction.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// client is a connection to the host.
type client struct {
	modern bool
	out    io.Writer

	mu      sync.Mutex
	last    int
	waiting map[string]chan message
	ended   bool
}

func newClient(era string, in io.Reader, out io.Writer) *client {
	c := &client{modern: era == "modern", out: out, waiting: map[string]chan message{}}
	go c.read(in)
	return c
}

var errEnded = errors.New("the host has closed its output")

// read passes answers to the waiting requests and answers the host's requests.
func (c *client) read(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m struct {
			message
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch {
		case m.Method == "":
			c.mu.Lock()
			if waits := c.waiting[string(m.ID)]; waits != nil {
				waits <- m.message
			}
			c.mu.Unlock()
		case m.ID != nil:
			c.send(message{ID: m.ID, Result: reply(m.Method, m.Params)}) //nolint:errcheck // the end shows when reading
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, waits := range c.waiting {
		waits <- message{Error: &rpcError{Message: errEnded.Error()}}
	}
}

func (c *client) send(m message) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.out.Write(append(line, '\n'))
	return err
}

// open opens the connection as the era requires.
func (c *client) open() error {
	if c.modern {
		return nil
	}
	_, err := c.once("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": capabilities,
		"clientInfo": map[string]any{"name": "driver", "version": "1"},
	})
	if err != nil {
		return err
	}
	return c.send(message{Method: "notifications/initialized"})
}

// request sends a request. If the result requires input, it sends the request again
// with the input, until the final result.
func (c *client) request(method string, params map[string]any) (json.RawMessage, error) {
	for {
		result, err := c.once(method, params)
		if err != nil {
			return nil, err
		}
		var round struct {
			ResultType    string
			InputRequests map[string]struct {
				Method string
				Params json.RawMessage
			}
			RequestState json.RawMessage
		}
		if err := json.Unmarshal(result, &round); err != nil {
			return nil, err
		}
		if round.ResultType != "input_required" {
			return result, nil
		}
		delete(params, "requestState")
		delete(params, "inputResponses")
		if round.RequestState != nil {
			params["requestState"] = round.RequestState
		}
		if round.InputRequests != nil {
			responses := map[string]any{}
			for key, asked := range round.InputRequests {
				responses[key] = reply(asked.Method, asked.Params)
			}
			params["inputResponses"] = responses
		}
	}
}

// once sends a request and returns its answer.
func (c *client) once(method string, params map[string]any) (json.RawMessage, error) {
	if c.modern {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modernVersion,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "driver", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": capabilities,
		}
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return nil, errEnded
	}
	c.last++
	id := fmt.Sprint(c.last)
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err := c.send(message{ID: json.RawMessage(id), Method: method, Params: params}); err != nil {
		return nil, err
	}
	got := <-answer
	if got.Error != nil {
		return nil, fmt.Errorf("%s: %w", method, got.Error)
	}
	return got.Result, nil
}

// reply answers a request of the host. It fills in a form with the defaults of its
// schema.
func reply(method string, params json.RawMessage) json.RawMessage {
	switch method {
	case "ping":
		return json.RawMessage(`{}`)
	case "roots/list":
		return json.RawMessage(`{"roots":[{"uri":"file:///driver"}]}`)
	case "sampling/createMessage":
		return json.RawMessage(`{"role":"assistant","model":"none","content":{"type":"text","text":"said"}}`)
	}
	var form struct {
		RequestedSchema schema
	}
	if json.Unmarshal(params, &form) != nil {
		return json.RawMessage(`{"action":"cancel"}`)
	}
	content := map[string]any{}
	for name, field := range form.RequestedSchema.Properties {
		content[name] = field.example()
	}
	raw, err := json.Marshal(map[string]any{"action": "accept", "content": content})
	if err != nil {
		return json.RawMessage(`{"action":"cancel"}`)
	}
	return raw
}

// schema holds the parts of a JSON Schema from which example values are made.
type schema struct {
	Type       any
	Default    any
	Enum       []any
	Properties map[string]schema
}

func (s schema) example() any {
	switch {
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	switch s.Type {
	case "string":
		return "x"
	case "number", "integer":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	case "null":
		return nil
	}
	return s.arguments()
}

func (s schema) arguments() map[string]any {
	out := map[string]any{}
	for name, property := range s.Properties {
		out[name] = property.example()
	}
	return out
}
