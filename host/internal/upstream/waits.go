package upstream

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
)

// waits reports whether somebody waits for the answer to a request.
func (c *conn) waits(rawID json.RawMessage) bool {
	id, err := strconv.ParseUint(string(rawID), 10, 64)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending[id] != nil
}

// busy reports whether a caller of the host's waits for an answer.
func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		if p.from != nil {
			return true
		}
	}
	return false
}

// annotated returns the tool of that name if arguments of it are to be
// repeated in headers (x-mcp-header), as the modern version asks for.
func (c *conn) annotated(name string) *mcp.Tool {
	for _, definition := range c.listed() {
		if !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
			continue
		}
		var tool mcp.Tool
		if json.Unmarshal(definition, &tool) == nil && tool.Name == name {
			return &tool
		}
	}
	return nil
}

// badlyAnnotated reports whether a tool asks for headers that cannot be made.
// Over streamable HTTP the modern version has clients leave such a tool out,
// and only it.
func badlyAnnotated(definition json.RawMessage) bool {
	if !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
		return false
	}
	var tool mcp.Tool
	return json.Unmarshal(definition, &tool) == nil && mcp.ValidateParamHeaderAnnotations(&tool) != nil
}
