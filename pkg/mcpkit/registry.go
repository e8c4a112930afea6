package mcpkit

import (
	"slices"
	"sync"
)

// registry is an ordered set of tools by name, safe for concurrent use.
type registry struct {
	mu    sync.RWMutex
	tools []*Tool // in the order they were first added; never changed in place
}

// newRegistry makes a registry of tools. Of two with the same name, the later
// replaces the earlier in its position.
func newRegistry(tools ...*Tool) *registry {
	r := &registry{}
	r.Add(tools...)
	return r
}

// Add appends tools; a tool whose name is taken replaces the existing one in
// its position.
func (r *registry) Add(tools ...*Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := slices.Clone(r.tools)
	for _, t := range tools {
		if i := indexByName(next, t.Name()); i >= 0 {
			next[i] = t
		} else {
			next = append(next, t)
		}
	}
	r.tools = next
}

// ByName returns the tool with that name, or else the first one with that
// alias.
func (r *registry) ByName(name string) (*Tool, bool) {
	tools := r.All()
	if i := indexByName(tools, name); i >= 0 {
		return tools[i], true
	}
	for _, t := range tools {
		if slices.Contains(t.def.Aliases, name) {
			return t, true
		}
	}
	return nil, false
}

// Names returns the names in order.
func (r *registry) Names() []string {
	tools := r.All()
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name()
	}
	return names
}

// All returns the tools in order. The slice does not change with the registry;
// the caller must not change it.
func (r *registry) All() []*Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tools
}

// Len returns the number of tools.
func (r *registry) Len() int { return len(r.All()) }

// Remove removes the named tool and reports whether it existed.
func (r *registry) Remove(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := indexByName(r.tools, name)
	if i < 0 {
		return false
	}
	r.tools = slices.Concat(r.tools[:i], r.tools[i+1:])
	return true
}

func indexByName(tools []*Tool, name string) int {
	return slices.IndexFunc(tools, func(t *Tool) bool { return t.Name() == name })
}
