package dialect

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of a document. A configuration is small; what is not is a
// mistake or an attack.
const (
	maxText  = 1 << 20
	maxNodes = 100_000
	maxDepth = 64
)

// kind is the type of a node.
type kind uint8

const (
	nullNode kind = iota
	boolNode
	numberNode
	textNode
	listNode
	mapNode
)

// node is a value of a document in JSON, YAML or TOML.
type node struct {
	kind  kind
	text  string  // of a scalar, as it was written
	items []*node // of a list
	pairs []pair  // of a map, in the order of the file
	line  int     // 0: unknown
}

// pair is a member of a map node.
type pair struct {
	key   string
	line  int
	value *node
}

// get returns the value under a key; nil if it is missing, or n is nil or no map.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mapNode {
		return nil
	}
	for _, p := range n.pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// kindWord names the kind of a value for a message. It never shows the value.
func (n *node) kindWord() string {
	switch n.kind {
	case nullNode:
		return "nothing"
	case boolNode:
		return "true or false"
	case numberNode:
		return "a number"
	case textNode:
		return "a string"
	case listNode:
		return "a list"
	}
	return "a map"
}

// isScalar reports whether the node is a bool, a number or a text.
func (n *node) isScalar() bool {
	return n.kind == boolNode || n.kind == numberNode || n.kind == textNode
}

// syntaxError is an error in the JSON, YAML or TOML, with its line. Its text quotes
// nothing of the file, which may contain credentials.
type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return e.text }

// newSyntaxError returns an error about a line of the file; 0 if the line is unknown.
func newSyntaxError(line int, format string, args ...any) error {
	return &syntaxError{line, fmt.Sprintf(format, args...)}
}

// removeQuotes removes from a parser's message everything that it quotes from the file, which may
// be a credential. A single quoted sign, as in "did not find expected ',' or ']'", is the
// parser's and stays.
func removeQuotes(message string) string {
	var b strings.Builder
	for rest := message; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		switch {
		case strings.ContainsRune("\"'`", r):
			quoted, after, _ := strings.Cut(rest, string(r))
			if len(quoted) == 1 && strings.Contains(",:[]{}", quoted) {
				b.WriteString("'" + quoted + "'")
			} else {
				b.WriteRune('…')
			}
			rest = after
		case r < 0x80 && r >= ' ':
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}
