package mcpkittest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// encodeMessage encodes a request, or a notification if id is "". It panics if
// params cannot be encoded.
func encodeMessage(id, method string, params any) []byte {
	m := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  any             `json:"params,omitempty"`
	}{"2.0", json.RawMessage(id), method, params}
	line, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("params of %s: %v", method, err))
	}
	return line
}

// Send writes one line unchanged and adds the newline.
func (c *Client) Send(line []byte) {
	c.t.Helper()
	c.SendRaw(append(bytes.Clone(line), '\n'))
}

// SendRaw writes bytes unchanged. If the server has exited, it only logs: the
// missing answers will fail the test.
func (c *Client) SendRaw(data []byte) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if _, err := c.in.Write(data); err != nil {
		c.t.Logf("writing to the server: %v", err)
	}
}

// Notify sends a notification.
func (c *Client) Notify(method string, params any) {
	c.t.Helper()
	c.Send(encodeMessage("", method, params))
}

// Go sends a request with the next id and returns the id, for Answer. It does
// not wait.
func (c *Client) Go(method string, params any) (id string) {
	c.t.Helper()
	c.mu.Lock()
	c.lastID++
	id = strconv.Itoa(c.lastID)
	c.mu.Unlock()
	c.Send(encodeMessage(id, method, c.withMeta(params)))
	return id
}

// withMeta returns params with the _meta that a modern client sends with each
// request; for other clients, params.
func (c *Client) withMeta(params any) any {
	if c.opts.Era != Modern {
		return params
	}
	raw, err := json.Marshal(params)
	if err != nil {
		c.t.Fatalf("params: %v", err)
	}
	object := map[string]json.RawMessage{}
	meta := map[string]any{}
	if params != nil && json.Unmarshal(raw, &object) != nil || json.Unmarshal(orNull(object["_meta"]), &meta) != nil {
		return params
	}
	if meta == nil {
		meta = map[string]any{}
	}
	meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
	meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
	meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "mcpkittest", "version": "1"}
	out := map[string]any{"_meta": meta}
	for name, value := range object {
		if name != "_meta" {
			out[name] = value
		}
	}
	return out
}

// orNull returns raw, or JSON's null if raw is nil.
func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// Request sends a request and waits for its answer.
func (c *Client) Request(method string, params any) Answer {
	c.t.Helper()
	return c.Answer(c.Go(method, params))
}
