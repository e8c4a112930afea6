package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// described is a key of the configuration as its JSON Schema describes it.
type described struct {
	Type        any                   `json:"type"`
	Enum        []any                 `json:"enum"`
	Pattern     string                `json:"pattern"`
	Description string                `json:"description"`
	Properties  map[string]*described `json:"properties"`
	More        json.RawMessage       `json:"additionalProperties"`
	Items       *described            `json:"items"`
	OneOf       []*described          `json:"oneOf"`
	Defs        map[string]*described `json:"$defs"`
}

// values returns the kinds of values that a key takes.
func (d *described) values() string {
	var words []string
	switch {
	case len(d.OneOf) > 0:
		for _, other := range d.OneOf {
			words = append(words, other.values())
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
	default:
		kinds, ok := d.Type.([]any)
		if !ok {
			kinds = []any{d.Type}
		}
		names := map[any]string{"array": "list", "object": "map", "string": "text", "integer": "number", "number": "number", "boolean": "true or false", "null": "null"}
		for _, kind := range kinds {
			if name := names[kind]; name != "" {
				words = append(words, name)
			}
		}
	}
	return strings.Join(words, ", ")
}

// keys calls visit with each key and its path, in alphabetical order.
func (d *described) keys(path string, visit func(path string, d *described)) {
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		visit(path+name, d.Properties[name])
		if path+name != "tools" { // described in declared-tools.md
			d.Properties[name].keys(path+name+".", visit)
		}
	}
	for _, other := range d.OneOf {
		if len(d.Properties) == 0 { // otherwise it only says which keys go together
			other.keys(path, visit)
		}
	}
	if d.Items != nil {
		d.Items.keys(strings.TrimSuffix(path, ".")+"[].", visit)
	}
	var each described
	if json.Unmarshal(d.More, &each) == nil {
		each.keys(path+"NAME.", visit)
	}
}

// settings returns the tables of the configuration's keys: of a server
// (server), or of everything else (host), a table for each first key.
func settings(bin, of string) (string, error) {
	out, err := run(bin, "mcp-host", "config", "schema")
	if err != nil {
		return "", err
	}
	var schema described
	if err := json.Unmarshal([]byte(out), &schema); err != nil {
		return "", err
	}
	columns := []string{"key", "value", "meaning"}
	add := func(t *table) func(string, *described) {
		return func(path string, d *described) { t.row("`"+path+"`", d.values(), d.Description) }
	}
	if of == "server" {
		t := newTable(columns...)
		schema.Defs["server"].keys("servers.NAME.", add(t))
		return t.b.String(), nil
	}
	delete(schema.Properties, "$schema")
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		t := newTable(columns...)
		(&described{Properties: map[string]*described{name: schema.Properties[name]}}).keys("", add(t))
		fmt.Fprintf(&b, "### %s\n\n%s\n", name, t.b.String())
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
