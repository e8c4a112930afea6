package mcpkit

import (
	"slices"
	"strconv"
	"strings"
)

// path is a position in the arguments, linked to its parent, so that walking a
// long list makes no text until a message needs it.
type argPath struct {
	parent *argPath
	name   string
	index  int // index, if list is set
	isItem bool
}

func (p *argPath) member(name string) *argPath { return &argPath{parent: p, name: name} }

func (p *argPath) item(i int) *argPath { return &argPath{parent: p, index: i, isItem: true} }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// String returns the JSON pointer (RFC 6901); "" is the root.
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
