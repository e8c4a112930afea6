package mcpkit

import (
	"slices"
	"strconv"
	"strings"
)

// argPath is a position in the arguments, linked to its parent, so that walking
// a long list makes no text until a message needs it. nil is the root.
type argPath struct {
	parent *argPath
	name   string // of an object's member
	index  int    // of a list's item
	isItem bool   // whether it is an item, not a member
}

// member returns the position of an object's member.
func (p *argPath) member(name string) *argPath { return &argPath{parent: p, name: name} }

// item returns the position of a list's item.
func (p *argPath) item(i int) *argPath { return &argPath{parent: p, index: i, isItem: true} }

// pointerEscapes escapes a member name for a JSON pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// String returns the position as a JSON pointer (RFC 6901); "" for the root.
func (p *argPath) String() string {
	var parts []string
	for ; p != nil; p = p.parent {
		part := strconv.Itoa(p.index)
		if !p.isItem {
			part = pointerEscapes.Replace(p.name)
		}
		parts = append(parts, "/"+part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}
