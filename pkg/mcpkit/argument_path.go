package mcpkit

import (
	"slices"
	"strconv"
	"strings"
)

// path is a position in the arguments, linked to its parent, so that walking a
// long list makes no text until a message needs it.
type path struct {
	up   *path
	name string
	item int // index, if list is set
	list bool
}

func (p *path) member(name string) *path { return &path{up: p, name: name} }

func (p *path) at(i int) *path { return &path{up: p, item: i, list: true} }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// String returns the JSON pointer (RFC 6901); "" is the root.
func (p *path) String() string {
	var parts []string
	for ; p != nil; p = p.up {
		part := strconv.Itoa(p.item)
		if !p.list {
			part = pointerEscapes.Replace(p.name)
		}
		parts = append(parts, "/"+part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}
