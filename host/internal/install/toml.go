package install

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// tomlLine is one line of a TOML text.
type tomlLine struct {
	start, end int // byte positions; end is after the line end
	// table has the keys of the table or array of tables whose header the line is;
	// nil: it is no header.
	table []string
}

// tomlLines splits a text, valid TOML, into lines. A line inside a string over several
// lines, or inside a list, is no header.
func tomlLines(text []byte) []tomlLine {
	var lines []tomlLine
	quote, depth := "", 0
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := tomlLine{start: at, end: end}
		if quote == "" && depth == 0 {
			line.table = tomlTableKeys(string(text[at:end]))
		}
		if line.table == nil {
			quote, depth = scanTOML(string(text[at:end]), quote, depth)
		}
		lines = append(lines, line)
		at = end
	}
	return lines
}

// scanTOML takes the state at the start of a line and returns the state at its end: the
// quotes of the string that is still open, "" for none, and the number of open lists and
// inline tables.
func scanTOML(line, quote string, depth int) (string, int) {
	for i := 0; i < len(line); {
		rest := line[i:]
		switch {
		case quote != "":
			if strings.HasPrefix(quote, `"`) && rest[0] == '\\' {
				i += 2
				continue
			}
			if strings.HasPrefix(rest, quote) {
				i += len(quote)
				quote = ""
				continue
			}
		case rest[0] == '#':
			return quote, depth
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, "'''"):
			quote = rest[:3]
			i += 3
			continue
		case rest[0] == '"' || rest[0] == '\'':
			quote = rest[:1]
		case rest[0] == '[' || rest[0] == '{':
			depth++
		case rest[0] == ']' || rest[0] == '}':
			depth--
		}
		i++
	}
	if len(quote) == 1 { // it ends on its line
		quote = ""
	}
	return quote, depth
}

// tomlKeyPattern matches a key in a table header, bare (1) or quoted (2, 3), with the dot or the
// closing brackets after it (4).
var tomlKeyPattern = lazyregexp.New(`^\s*(?:([A-Za-z0-9_-]+)|"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(\.|\]\]?\s*(?:#.*)?$)`)

// tomlTableKeys returns the keys of the table header on the line, nil if it is none.
func tomlTableKeys(line string) (keys []string) {
	line = strings.TrimSpace(line)
	rest, ok := strings.CutPrefix(line, "[")
	if !ok {
		return nil
	}
	rest = strings.TrimPrefix(rest, "[")
	for {
		m := tomlKeyPattern().FindStringSubmatch(rest)
		if m == nil {
			return nil
		}
		keys = append(keys, m[1]+m[2]+m[3])
		if m[4] != "." {
			return keys
		}
		rest = rest[len(m[0]):]
	}
}

// setTOML returns the text with the server's table: in the position of the present one, or
// at the end. It returns the error of findTOMLTable.
func setTOML(text []byte, member, name string, entry []field) ([]byte, error) {
	start, end, err := findTOMLTable(text, member, name)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	block := "[" + member + "." + tomlKeyText(name) + "]" + newline
	for _, f := range entry {
		block += tomlKeyText(f.name) + " = " + inlineTOML(f.value) + newline
	}
	if start < 0 {
		before := ""
		if len(text) > 0 && text[len(text)-1] != '\n' {
			before = newline
		}
		if len(bytes.TrimSpace(text)) > 0 {
			before += newline
		}
		return append(append(bytes.Clone(text), before...), block...), nil
	}
	return splice(text, start, end, block), nil
}

// bareKeyPattern matches the keys that TOML and YAML need no quotes for.
var bareKeyPattern = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// tomlKeyText returns the key as TOML, quoted if necessary.
func tomlKeyText(name string) string {
	if bareKeyPattern().MatchString(name) {
		return name
	}
	return jsonString(name)
}

// findTOMLTable returns the byte positions of the server's table with its subtables,
// without the comments and empty lines before the next table. start is -1 if none exists. It
// fails if other tables are between them.
func findTOMLTable(text []byte, member, name string) (start, end int, err error) {
	if _, err := entriesOfTOML(text, member); err != nil {
		return -1, 0, err
	}
	start = -1
	inside := false
	for _, line := range tomlLines(text) {
		if line.table != nil {
			inside = len(line.table) >= 2 && line.table[0] == member && line.table[1] == name
			if inside && start >= 0 && len(bytes.TrimSpace(text[end:line.start])) > 0 {
				return -1, 0, fmt.Errorf("the tables of %s.%s are in several places: change them by hand", member, name)
			}
		}
		content := bytes.TrimSpace(text[line.start:line.end])
		if !inside || len(content) == 0 || content[0] == '#' {
			continue
		}
		if start < 0 {
			start = line.start
		}
		end = line.end
	}
	return start, end, nil
}

// removeTOML returns the text without the server's table and the empty line before it,
// unchanged if it has no such table.
func removeTOML(text []byte, member, name string) ([]byte, error) {
	start, end, err := findTOMLTable(text, member, name)
	if err != nil || start < 0 {
		return text, err
	}
	head := text[:start]
	for _, empty := range []string{"\r\n", "\n"} {
		if before, ok := bytes.CutSuffix(head, []byte(empty)); ok && (len(before) == 0 || before[len(before)-1] == '\n') {
			head = before
			break
		}
	}
	return append(bytes.Clone(head), text[end:]...), nil
}

// entriesOfTOML returns the decoded tables below member by their names, nil if there are
// none. It returns an error for malformed text, or if member is no table.
func entriesOfTOML(text []byte, member string) (map[string]any, error) {
	var all map[string]any
	if _, err := toml.Decode(strings.TrimPrefix(string(text), "\ufeff"), &all); err != nil {
		return nil, err
	}
	entries, ok := all[member].(map[string]any)
	if !ok && all[member] != nil {
		return nil, fmt.Errorf("%q is not a table", member)
	}
	return entries, nil
}
