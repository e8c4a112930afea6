package install

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// AddYAML returns a YAML text with an entry in the mapping called member; every other
// byte stays. It fails if the entry exists, and for forms that cannot be edited,
// such as braces. The text may be empty.
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
	return yamlFormat.with(text, member, name, fields)
}

// RemoveYAML returns a YAML text without an entry of the mapping called member. It
// fails if there is no such entry.
func RemoveYAML(text []byte, member, name string) ([]byte, error) {
	have, err := yamlFormat.entries(text, member)
	if err != nil {
		return nil, err
	}
	if _, ok := have[name]; !ok {
		return nil, fmt.Errorf("%s has no %q", member, name)
	}
	return yamlFormat.without(text, member, name)
}
