package mcpkit

import (
	"slices"
	"sync"
)

// Registry is an ordered set of tools by name, safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	tools []*Tool // in the order they were first added; never changed in place
}

// NewRegistry makes a registry of tools. Of two with the same name, the later
// replaces the earlier in its position.
func NewRegistry(tools ...*Tool) *Registry {
	r := &Registry{}
	r.Add(tools...)
	return r
}

// Add appends tools; a tool whose name is taken replaces the existing one in
// its position.
func (r *Registry) Add(tools ...*Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := slices.Clone(r.tools)
	for _, t := range tools {
		if i := index(next, t.Name()); i >= 0 {
			next[i] = t
		} else {
			next = append(next, t)
		}
	}
	r.tools = next
}

// ByName returns the tool with that name, or else the first one with that
// alias.
func (r *Registry) ByName(name string) (*Tool, bool) {
	tools := r.All()
	if i := index(tools, name); i >= 0 {
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
func (r *Registry) Names() []string {
	tools := r.All()
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name()
	}
	return names
}

// All returns the tools in order. The slice does not change with the registry;
// the caller must not change it.
func (r *Registry) All() []*Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tools
}

// Len returns the number of tools.
func (r *Registry) Len() int { return len(r.All()) }

// Remove removes the named tool and reports whether it existed.
func (r *Registry) Remove(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := index(r.tools, name)
	if i < 0 {
		return false
	}
	r.tools = slices.Concat(r.tools[:i], r.tools[i+1:])
	return true
}

// Filter returns a new registry with the tools that keep accepts.
func (r *Registry) Filter(keep func(*Tool) bool) *Registry {
	out := &Registry{}
	for _, t := range r.All() {
		if keep(t) {
			out.tools = append(out.tools, t)
		}
	}
	return out
}

func index(tools []*Tool, name string) int {
	return slices.IndexFunc(tools, func(t *Tool) bool { return t.Name() == name })
}
