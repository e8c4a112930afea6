package dialect

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"go.yaml.in/yaml/v3"
)

// A Tree is a value of a document in JSON, YAML or TOML, for other packages that read a
// part of the document: declared tools.
type Tree struct {
	Line    int    // 0: unknown
	Text    string // of a scalar, as it was written
	Items   []*Tree
	Members []MapMember // in the order of the file

	kind kind
}

// A MapMember is one member of a map.
type MapMember struct {
	Name  string
	Line  int
	Value *Tree
}

// KindName names the kind of a value for a message. It never shows the value.
func (t *Tree) KindName() string { return (&node{kind: t.kind}).kindWord() }

// IsMap, IsList, IsText, IsNumber, IsNull and IsScalar report the kind.
func (t *Tree) IsMap() bool { return t != nil && t.kind == mapNode }

// IsList reports whether the value is a list; false for nil.
func (t *Tree) IsList() bool { return t != nil && t.kind == listNode }

// IsText reports whether the value is a text; false for nil.
func (t *Tree) IsText() bool { return t != nil && t.kind == textNode }

// IsNumber reports whether the value is a number; false for nil.
func (t *Tree) IsNumber() bool { return t != nil && t.kind == numberNode }

// IsNull reports whether the value is null or nil.
func (t *Tree) IsNull() bool { return t == nil || t.kind == nullNode }

// IsScalar reports whether the value is a bool, a number or a text; false for nil.
func (t *Tree) IsScalar() bool { return t != nil && (&node{kind: t.kind}).isScalar() }

// Bool returns a bool; ok is false for other values and for nil.
func (t *Tree) Bool() (value, ok bool) {
	if t == nil || t.kind != boolNode {
		return false, false
	}
	return strings.EqualFold(t.Text, "true"), true
}

// Get returns the value under a name, nil if it is missing.
func (t *Tree) Get(name string) *Tree {
	if !t.IsMap() {
		return nil
	}
	for _, b := range t.Members {
		if b.Name == name {
			return b.Value
		}
	}
	return nil
}

// JSON returns the value as JSON, with the members in the order of the file.
func (t *Tree) JSON() []byte { return t.appendJSON(nil) }

// appendJSON appends the value as JSON.
func (t *Tree) appendJSON(dst []byte) []byte {
	switch t.kind {
	case boolNode:
		return append(dst, strings.ToLower(t.Text)...)
	case numberNode:
		return append(dst, jsonNumber(t.Text)...)
	case textNode:
		return jsonrpc.AppendString(dst, t.Text)
	case listNode:
		dst = append(dst, '[')
		for i, item := range t.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	case mapNode:
		dst = append(dst, '{')
		for i, b := range t.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonrpc.AppendString(dst, b.Name), ':')
			dst = b.Value.appendJSON(dst)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// jsonNumber returns a number of YAML or TOML (0x10, 1_000, +1, .5) as a JSON number, or
// as a string if JSON has no such number (.inf).
func jsonNumber(text string) []byte {
	if jsonrpc.Valid([]byte(text)) == nil {
		return []byte(text)
	}
	if n, err := strconv.ParseInt(strings.TrimPrefix(text, "+"), 0, 64); err == nil {
		return strconv.AppendInt(nil, n, 10)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	out := strconv.AppendFloat(nil, f, 'g', -1, 64)
	if err != nil || jsonrpc.Valid(out) != nil {
		return jsonrpc.AppendString(nil, text)
	}
	return out
}

// toTree returns the node as a Tree.
func (n *node) toTree() *Tree {
	t := &Tree{Line: n.line, Text: n.text, kind: n.kind}
	for _, item := range n.items {
		t.Items = append(t.Items, item.toTree())
	}
	for _, p := range n.pairs {
		t.Members = append(t.Members, MapMember{p.key, p.line, p.value.toTree()})
	}
	return t
}

// ParseTrees parses a file of one document or, in YAML, of several, within the bounds of a
// configuration. It leaves out empty documents. The problem is nil for a valid file.
func ParseTrees(file string, text []byte) ([]*Tree, *Problem) {
	nodes, err := parseAll(file, text)
	if err != nil {
		p := Problem{File: file, Text: err.Error()}
		if fault, ok := err.(*syntaxError); ok { //nolint:errorlint // made here, never wrapped
			p.Line = fault.line
		}
		return nil, &p
	}
	var trees []*Tree
	for _, n := range nodes {
		if n.kind != nullNode {
			trees = append(trees, n.toTree())
		}
	}
	return trees, nil
}

// parseAll parses a file with one value, or a YAML file with several documents. It returns
// an error if one of them is malformed.
func parseAll(file string, raw []byte) (nodes []*node, err error) {
	ext := strings.ToLower(filepath.Ext(file))
	text := strings.TrimPrefix(string(raw), "\ufeff")
	if ext != ".yaml" && ext != ".yml" || looksJSON(text) || len(raw) > maxText || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		n, err := parse(file, raw)
		return []*node{n}, err
	}
	defer func() {
		if recover() != nil { // the library's, on input it did not expect
			nodes, err = nil, newSyntaxError(0, "not YAML")
		}
	}()
	d := yaml.NewDecoder(strings.NewReader(text))
	c := yamlConverter{}
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			if err.Error() == "EOF" {
				return nodes, nil
			}
			return nil, yamlError(err)
		}
		n, err := c.convert(&doc, 0)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
}

// Nearest returns a suggestion for a misspelled name, to follow a message; "" if no
// candidate is similar.
func Nearest(name string, candidates []string) string { return didYouMean(name, candidates) }

// SameName reports whether two spellings are one name: api_key, apiKey, API-KEY.
func SameName(a, b string) bool { return normalizeName(a) == normalizeName(b) }

// ShownName returns a name from a file in a form that is short and printable, for a message.
func ShownName(name string) string { return shownName(name) }
