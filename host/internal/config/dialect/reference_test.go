package dialect_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
)

// withDescription is the entry of a key in a JSON Schema.
type withDescription struct {
	Type        any                         `json:"type"`
	Enum        []any                       `json:"enum"`
	Pattern     string                      `json:"pattern"`
	Description string                      `json:"description"`
	Properties  map[string]*withDescription `json:"properties"`
	More        json.RawMessage             `json:"additionalProperties"`
	Items       *withDescription            `json:"items"`
	OneOf       []*withDescription          `json:"oneOf"`
	Defs        map[string]*withDescription `json:"$defs"`
}

// takes is which values a key may have, in few words.
func (d *withDescription) takes() string {
	var words []string
	switch {
	case len(d.OneOf) > 0:
		for _, one := range d.OneOf {
			words = append(words, one.takes())
		}
	case len(d.Enum) > 0:
		for _, value := range d.Enum {
			if value != false {
				words = append(words, fmt.Sprintf("`%v`", value))
			}
		}
	case strings.Contains(d.Pattern, "µs"):
		return "time (`10s`)"
	case strings.Contains(d.Pattern, "KiB"):
		return "size (`64KiB`)"
	case d.Type == "array":
		return "list"
	case d.Type == "object":
		return "map"
	case d.Type == "string":
		return "text"
	case d.Type == "integer", d.Type == "number":
		return "number"
	case d.Type == "boolean":
		return "true or false"
	default:
		list, _ := d.Type.([]any)
		for _, kind := range list {
			words = append(words, (&withDescription{Type: kind}).takes())
		}
	}
	return strings.Join(words, ", ")
}

// plain reports whether a key has one value, of which there has to be a default.
func (d *withDescription) plain() bool {
	return slices.ContainsFunc([]string{"time", "size", "number", "true or false", "`"}, func(word string) bool { return strings.Contains(d.takes(), word) })
}

// keys calls visit with each key below one, with its path.
func (d *withDescription) keys(path string, visit func(path string, d *withDescription)) {
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		visit(path+name, d.Properties[name])
		if path+name == "tools" { // docs/declared-tools.md has the rest
			continue
		}
		d.Properties[name].keys(path+name+".", visit)
	}
	for _, one := range d.OneOf {
		if len(d.Properties) == 0 { // else it says only which may stand together
			one.keys(path, visit)
		}
	}
	if d.Items != nil {
		d.Items.keys(strings.TrimSuffix(path, ".")+"[].", visit)
	}
	var each withDescription
	if json.Unmarshal(d.More, &each) == nil {
		each.keys(path+"NAME.", visit)
	}
}

// Each key of the schema has a description, with its default if it has a single value.
// docs/configuration.md is made of them.
func TestReference(t *testing.T) {
	var schema withDescription
	require.NoError(t, json.Unmarshal(dialect.Schema(), &schema))
	says := regexp.MustCompile(`\bdefault\b|if not given|unless |inferred|\boff(?: for|:)|(?:may|can) be empty`)
	count := 0
	check := func(path string, d *withDescription) {
		count++
		require.NotEmpty(t, d.Description, path)
		needed := path == "policy.rules[].do"
		require.True(t, needed || !d.plain() || says.MatchString(d.Description), "%s: say what holds where it is not given: %s", path, d.Description)
	}
	schema.Defs["server"].keys("servers.NAME.", check)
	delete(schema.Properties, "$schema")
	schema.keys("", check)
	require.Greater(t, count, 130)
}
