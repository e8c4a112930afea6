package upstream

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
)

// isPending reports whether a caller waits for the answer to a request.
func (c *conn) isPending(rawID json.RawMessage) bool {
	id, err := strconv.ParseUint(string(rawID), 10, 64)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending[id] != nil
}

// isBusy reports whether a caller waits for an answer.
func (c *conn) isBusy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		if p.request != nil {
			return true
		}
	}
	return false
}

// toolWithHeaders returns the tool with a name if some of its arguments must be repeated in
// headers (x-mcp-header), as the modern version requires; else nil.
func (c *conn) toolWithHeaders(name string) *mcp.Tool {
	for _, definition := range c.listedTools() {
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

// hasInvalidHeaders reports whether a tool asks for headers that cannot be built. Over
// streamable HTTP, the modern version requires clients to ignore such a tool.
func hasInvalidHeaders(definition json.RawMessage) bool {
	if !bytes.Contains(definition, []byte(`"x-mcp-header"`)) {
		return false
	}
	var tool mcp.Tool
	return json.Unmarshal(definition, &tool) == nil && mcp.ValidateParamHeaderAnnotations(&tool) != nil
}
