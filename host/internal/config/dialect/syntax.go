package dialect

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

var (
	startsJSONPattern = lazyregexp.New(`^(\s|//.*\n|/\*(.|\n)*?\*/)*\{`)
	tomlTablePattern  = lazyregexp.New(`(?m)^\s*\[[\w."' -]+\]\s*(#.*)?$`)
	jsonBeginPattern  = lazyregexp.New(`^\s*\{\s*("|//|/\*)`)
	commentPattern    = lazyregexp.New(`(^|[^:])//|/\*`)
	yamlLinePattern   = lazyregexp.New(`^line (\d+): `)
	tomlKeyPattern    = lazyregexp.New(`"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)`)
)

// parse parses a file as TOML, YAML or JSON, chosen by the file's name or else by the text.
// The error is a *syntaxError, also for a text that is too long or not UTF-8. An empty text
// is a null node.
func parse(file string, raw []byte) (*node, error) {
	if most := MaxText(file); len(raw) > most {
		return nil, newSyntaxError(0, "larger than %d KiB, the limit for a configuration", most>>10)
	}
	text := strings.TrimPrefix(string(raw), "\ufeff")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, newSyntaxError(0, "not UTF-8 text; save it as UTF-8")
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json", ".jsonc", ".json5":
		if strings.TrimSpace(text) == "" {
			return &node{}, nil
		}
		p := &jsonParser{text: text, line: 1}
		if isClaude(file) {
			p.skips = isSkipped
		}
		return p.parse()
	case ".toml":
		return parseTOML(text)
	case ".yaml", ".yml":
		return parseYAML(text)
	}
	switch {
	case startsJSONPattern().MatchString(text):
		if n, err := parseJSON(text); err == nil {
			return n, nil
		}
	case tomlTablePattern().MatchString(text):
		return parseTOML(text)
	}
	return parseYAML(text)
}

// looksJSON reports whether a text is JSON or JSONC rather than YAML.
func looksJSON(text string) bool {
	return jsonBeginPattern().MatchString(text)
}

// parseYAML parses one YAML document, and returns an error for a second one. A text that
// looks like JSON is parsed as JSON first, since // is a part of a name in YAML.
func parseYAML(text string) (n *node, err error) {
	if looksJSON(text) {
		if n, err := parseJSON(text); err == nil {
			return n, nil
		} else if commentPattern().MatchString(text) {
			return nil, err
		}
	}
	defer func() {
		if recover() != nil { // the library's, on input it did not expect
			n, err = nil, newSyntaxError(0, "not YAML")
		}
	}()
	d := yaml.NewDecoder(strings.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		if doc.Kind == 0 && strings.TrimSpace(text) == "" || err.Error() == "EOF" {
			return &node{}, nil
		}
		return nil, yamlError(err)
	}
	if err := d.Decode(&more); err == nil {
		return nil, newSyntaxError(more.Line, "a second YAML document; a configuration has only one")
	} else if err.Error() != "EOF" {
		return nil, yamlError(err)
	}
	c := yamlConverter{}
	return c.convert(&doc, 0)
}

// yamlError returns an error of the YAML library as a syntax error with its line.
func yamlError(err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := yamlLinePattern().FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) //nolint:errcheck // 0 is fine
		message = message[len(m[0]):]
	}
	return newSyntaxError(line, "not YAML: %s", removeQuotes(message))
}

// yamlConverter converts YAML nodes, and counts them, since aliases multiply them.
type yamlConverter struct{ nodes int }

// convert returns a YAML node as a node of this package. It returns a syntax error above
// maxNodes or maxDepth. Aliases are replaced by their nodes.
func (c *yamlConverter) convert(y *yaml.Node, depth int) (*node, error) {
	if c.nodes++; c.nodes > maxNodes || depth > maxDepth {
		return nil, newSyntaxError(y.Line, "too large or nested too deep for a configuration")
	}
	switch y.Kind {
	case yaml.DocumentNode:
		return c.convert(y.Content[0], depth)
	case yaml.AliasNode:
		return c.convert(y.Alias, depth+1)
	case yaml.SequenceNode:
		n := &node{kind: listNode, line: y.Line}
		for _, item := range y.Content {
			v, err := c.convert(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
		return n, nil
	case yaml.MappingNode:
		return c.convertMap(y, depth)
	}
	n := &node{kind: textNode, text: y.Value, line: y.Line}
	switch y.ShortTag() {
	case "!!null":
		n.kind, n.text = nullNode, ""
	case "!!bool":
		n.kind = boolNode
	case "!!int", "!!float":
		n.kind = numberNode
	}
	return n, nil
}

// convertMap converts a map, with the maps merged by <<, whose members its own members
// replace. It returns an error for a key that appears twice or is no scalar.
func (c *yamlConverter) convertMap(y *yaml.Node, depth int) (*node, error) {
	n := &node{kind: mapNode, line: y.Line}
	seen := map[string]bool{}
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		v, err := c.convert(value, depth+1)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, v)
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, newSyntaxError(key.Line, "a key must not be a list or a map")
		}
		if seen[key.Value] {
			return nil, newSyntaxError(key.Line, "%s appears twice", shownName(key.Value))
		}
		seen[key.Value] = true
		n.pairs = append(n.pairs, pair{key.Value, key.Line, v})
	}
	for len(merged) > 0 {
		m := merged[0]
		merged = append(merged[1:len(merged):len(merged)], m.items...)
		for _, p := range m.pairs {
			if !seen[p.key] {
				seen[p.key] = true
				n.pairs = append(n.pairs, p)
			}
		}
	}
	return n, nil
}

// parseTOML parses TOML. The error is a *syntaxError, also for a text that is nested too
// deep.
func parseTOML(text string) (n *node, err error) {
	defer func() {
		if recover() != nil {
			n, err = nil, newSyntaxError(0, "not TOML")
		}
	}()
	depth, deepest := 0, 0
	for _, c := range []byte(text) { // the library recurses without a bound
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	if deepest > 4*maxDepth || strings.Count(text, ".") > maxNodes {
		return nil, newSyntaxError(0, "nested too deep for a configuration")
	}
	var value map[string]any
	if _, err := toml.Decode(text, &value); err != nil {
		var fault toml.ParseError
		if errors.As(err, &fault) {
			return nil, newSyntaxError(fault.Position.Line, "not TOML: %s", removeQuotes(fault.Message))
		}
		return nil, newSyntaxError(0, "not TOML")
	}
	c := tomlConverter{lines: tomlLines(text)}
	return c.convert(value, "", 0)
}

// tomlConverter converts values of the TOML library, which have no line numbers; it
// finds the lines of keys itself.
type tomlConverter struct {
	lines map[string]int
	nodes int
}

// convert returns a TOML value as a node. path is its key in lines; if that is unknown, the
// node gets line, the enclosing table's. It returns an error for a value with more than
// maxNodes nodes or maxDepth levels.
func (c *tomlConverter) convert(value any, path string, line int) (*node, error) {
	if at, ok := c.lines[path]; ok {
		line = at
	}
	if c.nodes++; c.nodes > maxNodes || strings.Count(path, "\x00") > maxDepth {
		return nil, newSyntaxError(line, "too large or nested too deep for a configuration")
	}
	n := &node{line: line}
	item := func(v any, key string) (*node, error) { return c.convert(v, path+"\x00"+key, line) }
	switch v := value.(type) {
	case map[string]any:
		n.kind = mapNode
		for _, key := range slices.Sorted(maps.Keys(v)) { // the library keeps no order
			child, err := item(v[key], key)
			if err != nil {
				return nil, err
			}
			n.pairs = append(n.pairs, pair{key, child.line, child})
		}
	case []map[string]any:
		n.kind = listNode
		for i, v := range v {
			child, err := item(v, strconv.Itoa(i))
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, child)
		}
	case []any:
		n.kind = listNode
		for i, v := range v {
			child, err := item(v, strconv.Itoa(i))
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, child)
		}
	case bool:
		n.kind, n.text = boolNode, strconv.FormatBool(v)
	case int64:
		n.kind, n.text = numberNode, strconv.FormatInt(v, 10)
	case float64:
		n.kind, n.text = numberNode, strconv.FormatFloat(v, 'f', -1, 64)
	case time.Time:
		n.kind, n.text = textNode, v.Format(time.RFC3339)
	default:
		n.kind, n.text = textNode, fmt.Sprint(v)
	}
	return n, nil
}

// tomlLines finds the lines of tables and keys, which the library does not report, for
// messages. For a key written in an unusual way, it finds the line of the surrounding
// table.
func tomlLines(text string) map[string]int {
	lines := map[string]int{}
	table := ""
	lists := map[string]int{}
	header := regexp.MustCompile(`^\s*(\[\[?)([^\[\]#]+)\]`)
	key := regexp.MustCompile(`^\s*([A-Za-z0-9_."' -]+?)\s*=`)
	for i, line := range strings.Split(text, "\n") {
		if m := header.FindStringSubmatch(line); m != nil {
			table = tomlPath(m[2])
			if m[1] == "[[" {
				lists[table]++
				table += "\x00" + strconv.Itoa(lists[table]-1)
			}
			if _, ok := lines[table]; !ok {
				lines[table] = i + 1
			}
		} else if m := key.FindStringSubmatch(line); m != nil {
			path := table + tomlPath(m[1])
			if _, ok := lines[path]; !ok {
				lines[path] = i + 1
			}
		}
	}
	return lines
}

// tomlPath returns the path of a dotted key, as in tomlConverter.lines.
func tomlPath(dotted string) string {
	path := ""
	for _, m := range tomlKeyPattern().FindAllStringSubmatch(dotted, -1) {
		path += "\x00" + m[1] + m[2] + m[3]
	}
	return path
}
