package catalog

import "github.com/toolroom-mcp/toolroom/host/internal/call"

// BeingListed returns the servers that are being asked for their tools, in the configured
// order. A server that is not running is being started.
func (c *Catalog) BeingListed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, s := range c.allServers() {
		if s.lists[call.Tools].busy != nil {
			names = append(names, s.Source.Name())
		}
	}
	return names
}
