package install

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// yamlPosition is the position of the member with the servers, and of one entry in it,
// in a YAML text. Lines are counted from 0.
type yamlPosition struct {
	lines      [][]byte // with their ends
	servers    *yaml.Node
	memberLine int // line of the member's key, from 0; -1: none
	entryLine  int // line of the entry, -1: none
	entryEnd   int // line after it
	indent     int // white space before an entry
}

// findYAMLEntry returns the position of the entry name below member. It fails for a file
// with several documents, and for entries in braces.
func findYAMLEntry(text []byte, member, name string) (*yamlPosition, error) {
	p := &yamlPosition{lines: yamlLines(text), memberLine: -1, entryLine: -1, indent: 2}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil || len(doc.Content) == 0 {
		if len(bytes.TrimSpace(text)) == 0 || err == nil || err.Error() == "EOF" {
			return p, nil
		}
		return nil, err
	}
	if dec.Decode(&more) == nil {
		return nil, errors.New("the file has several documents")
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		if root.Tag == "!!null" {
			return p, nil
		}
		return nil, errors.New("the file is not a mapping")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == member {
			p.memberLine, p.servers = root.Content[i].Line-1, root.Content[i+1]
		}
	}
	if p.servers == nil {
		if root.Style&yaml.FlowStyle != 0 {
			return nil, errors.New("the file is written in braces: change it by hand")
		}
		return p, nil
	}
	if p.servers.Kind == yaml.MappingNode && len(p.servers.Content) > 0 && p.servers.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("%q is written in braces: change it by hand", member)
	}
	if p.servers.Kind != yaml.MappingNode && (p.servers.Tag != "!!null" || p.servers.Style&yaml.TaggedStyle != 0) {
		return nil, fmt.Errorf("%q is not a mapping", member)
	}
	for i := 0; i+1 < len(p.servers.Content); i += 2 {
		key := p.servers.Content[i]
		p.indent = key.Column - 1
		if key.Value == name {
			p.entryLine = key.Line - 1
			p.entryEnd = p.blockEnd(p.entryLine + 1)
		}
	}
	return p, nil
}

// yamlBreakPattern matches a line break.
var yamlBreakPattern = lazyregexp.New("\r\n|[\n\r\u0085\u2028\u2029]")

// yamlNullPattern matches a line with a key whose value is null; the groups are what comes before the
// value and after it.
var yamlNullPattern = lazyregexp.New(`^("?[\w-]+"?[ \t]*:)[ \t]+(?:null|Null|NULL|~)([ \t]+#.*\s*|\s*)$`)

// yamlLines splits a text into lines with their ends, as the parser counts them: by
// the line breaks of YAML 1.1 (section 5.4).
func yamlLines(text []byte) (lines [][]byte) {
	at := 0
	for _, found := range yamlBreakPattern().FindAllIndex(text, -1) {
		lines = append(lines, text[at:found[1]])
		at = found[1]
	}
	if at < len(text) {
		lines = append(lines, text[at:])
	}
	return lines
}

// blockEnd returns the line after the block that begins at the line from: the lines up
// to the first content that is not indented deeper than p.indent. Empty lines and
// comments at its end do not belong to it.
func (p *yamlPosition) blockEnd(from int) int {
	end := from
	for i := from; i < len(p.lines); i++ {
		content := bytes.TrimSpace(p.lines[i])
		if len(content) == 0 || content[0] == '#' {
			continue
		}
		if len(p.lines[i])-len(bytes.TrimLeft(p.lines[i], " ")) <= p.indent {
			break
		}
		end = i + 1
	}
	return end
}

// setYAML returns the text with the entry: in the position of the present one, or as the
// first below member, which is added at the end if it does not exist. It returns the error
// of findYAMLEntry.
func setYAML(text []byte, member, name string, entry []field) ([]byte, error) {
	p, err := findYAMLEntry(text, member, name)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	indent := strings.Repeat(" ", p.indent)
	block := indent + yamlKeyText(name) + ":" + newline
	for _, f := range entry {
		block += indent + "  " + yamlKeyText(f.name) + ": " + inlineValue(f.value) + newline
	}
	join := func(before [][]byte, added string, after [][]byte) []byte {
		head := bytes.Join(before, nil)
		if len(head) > 0 && head[len(head)-1] != '\n' {
			head = append(head, newline...)
		}
		return append(append(head, added...), bytes.Join(after, nil)...)
	}
	switch {
	case p.entryLine >= 0:
		return join(p.lines[:p.entryLine], block, p.lines[p.entryEnd:]), nil
	case p.memberLine < 0:
		return join(p.lines, member+":"+newline+block, nil), nil
	}
	line := p.lines[p.memberLine]
	if len(p.servers.Content) == 0 && p.servers.Style&yaml.FlowStyle != 0 { // extensions: {}
		line = bytes.Replace(line, []byte("{}"), nil, 1)
		line = append(bytes.TrimRight(line, " \r\n"), newline...)
	}
	if found := yamlNullPattern().FindSubmatch(line); found != nil && p.servers.Tag == "!!null" && p.servers.Value != "" {
		line = slices.Concat(found[1], found[2]) // extensions: null # comment
	}
	return join(append(p.lines[:p.memberLine:p.memberLine], line), block, p.lines[p.memberLine+1:]), nil
}

// yamlKeyText returns the key as YAML, quoted if necessary: also a key that would be
// read as a number, a truth value or null.
func yamlKeyText(name string) string {
	var value any
	if bareKeyPattern().MatchString(name) && yaml.Unmarshal([]byte(name), &value) == nil {
		if _, isText := value.(string); isText {
			return name
		}
	}
	return jsonString(name)
}

// removeYAML returns the text without the entry, unchanged if it has no such entry. It
// returns an error for a file that it cannot edit: no mapping, several documents, or written
// in braces.
func removeYAML(text []byte, member, name string) ([]byte, error) {
	p, err := findYAMLEntry(text, member, name)
	if err != nil || p.entryLine < 0 {
		return text, err
	}
	return append(bytes.Join(p.lines[:p.entryLine], nil), bytes.Join(p.lines[p.entryEnd:], nil)...), nil
}

// entriesOfYAML returns the decoded entries below member by their names, nil if there are
// none. It returns an error for malformed text, or if member is no mapping.
func entriesOfYAML(text []byte, member string) (map[string]any, error) {
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	entries, ok := all[member].(map[string]any)
	if !ok && all[member] != nil {
		return nil, fmt.Errorf("%q is not a mapping", member)
	}
	return entries, nil
}
