package mcpkit

import (
	"slices"
	"sync"
)

// registry is an ordered set of tools with unique names, safe for concurrent
// use.
type registry struct {
	mu    sync.RWMutex
	tools []*Tool // in the order in which they were added; replaced, never changed in place
}

// newRegistry returns a registry of tools. Of several with the same name, the
// last takes the place of the first.
func newRegistry(tools ...*Tool) *registry {
	r := &registry{}
	r.Put(tools...)
	return r
}

// Put appends tools. A tool whose name is taken replaces the existing tool in
// its place.
func (r *registry) Put(tools ...*Tool) {
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

// ByName returns the tool with that name or, without one, the first tool that has it as
// an alias. ok is false if there is neither.
func (r *registry) ByName(name string) (t *Tool, ok bool) {
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

// Names returns the tools' names in order, without aliases.
func (r *registry) Names() []string {
	tools := r.All()
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name()
	}
	return names
}

// All returns the tools in the order of their first Put. Later changes of the registry do not affect
// the slice, and the slice must not be changed.
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

// indexByName returns the index of the tool with that name, or -1.
func indexByName(tools []*Tool, name string) int {
	return slices.IndexFunc(tools, func(t *Tool) bool { return t.Name() == name })
}
