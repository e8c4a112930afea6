package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// AddYAML returns the YAML text with a new entry, name, in the top-level mapping member;
// every other byte stays. It fails if the entry exists, and for forms that cannot be
// edited, such as braces. The text may be empty.
func AddYAML(text []byte, member, name string, entry *yaml.Node) ([]byte, error) {
	have, err := yamlFormat.entries(text, member)
	if err != nil {
		return nil, err
	}
	if _, ok := have[name]; ok {
		return nil, fmt.Errorf("%q already exists in %s", name, member)
	}
	if entry.Kind != yaml.MappingNode {
		return nil, errors.New("the entry is not a mapping")
	}
	var fields []field
	for i := 0; i+1 < len(entry.Content); i += 2 {
		var value any
		if err := entry.Content[i+1].Decode(&value); err != nil {
			return nil, err
		}
		fields = append(fields, field{entry.Content[i].Value, value})
	}
	return yamlFormat.setChecked(text, member, name, fields)
}

// RemoveYAML returns the YAML text without the entry name of the top-level mapping
// member; every other byte stays. It fails if there is no such entry.
func RemoveYAML(text []byte, member, name string) ([]byte, error) {
	have, err := yamlFormat.entries(text, member)
	if err != nil {
		return nil, err
	}
	if _, ok := have[name]; !ok {
		names := strings.Join(slices.Sorted(maps.Keys(have)), ", ")
		return nil, fmt.Errorf("%s has no %q; it has %s", member, name, cmp.Or(names, "no entries"))
	}
	return yamlFormat.removeChecked(text, member, name)
}

// SetYAMLField returns the YAML text with the field key of the entry name, in the
// top-level mapping member, set to value; a field of that name is replaced, and every
// other byte stays. It fails if there is no such entry, and for forms that cannot be
// edited, such as braces.
func SetYAMLField(text []byte, member, name, key string, value any) ([]byte, error) {
	p, err := findYAMLEntry(text, member, name)
	switch {
	case err != nil:
		return nil, err
	case p.entryLine < 0:
		return nil, fmt.Errorf("%s has no %q", member, name)
	case p.entryEnd <= p.entryLine+1:
		return nil, fmt.Errorf("%q is written in braces: change it by hand", name)
	}
	ended := "\n"
	if bytes.HasSuffix(p.lines[p.entryLine], []byte("\r\n")) {
		ended = "\r\n"
	}
	from, to := p.entryEnd, p.entryEnd
	for i := p.entryLine + 1; i < p.entryEnd; i++ {
		content := bytes.TrimLeft(p.lines[i], " ")
		if len(bytes.TrimSpace(content)) == 0 || content[0] == '#' {
			continue
		}
		if p.indent = len(p.lines[i]) - len(content); bytes.HasPrefix(content, []byte(yamlKeyText(key)+":")) {
			from, to = i, min(p.blockEnd(i+1), p.entryEnd)
			break
		}
		i = max(i, p.blockEnd(i+1)-1)
	}
	line := strings.Repeat(" ", p.indent) + yamlKeyText(key) + ": " + inlineValue(value) + ended
	if before := bytes.Join(p.lines[:from], nil); bytes.HasSuffix(before, []byte("\n")) {
		text = append(before, line...)
	} else {
		text = append(append(before, ended...), line...)
	}
	text = append(text, bytes.Join(p.lines[to:], nil)...)
	have, err := yamlFormat.entries(text, member)
	if err != nil {
		return nil, err
	}
	if entry, ok := have[name].(map[string]any); !ok || entry[key] == nil {
		return nil, fmt.Errorf("%q is written in a form that cannot be edited: change it by hand", name)
	}
	return text, nil
}
