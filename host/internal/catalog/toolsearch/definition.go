package toolsearch

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// definition holds the used parts of a tool's definition. A member with an unexpected
// type counts as missing.
type definition struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Input       struct {
		Properties json.RawMessage `json:"properties"`
		Required   json.RawMessage `json:"required"`
	} `json:"inputSchema"`
}

// parseDefinition decodes the searchable members of a tool's definition. It leaves out
// members of a wrong type.
func parseDefinition(raw json.RawMessage) (d definition) {
	if json.Unmarshal(raw, &d) == nil {
		return d
	}
	// Decode member by member, so that an invalid one does not hide the others.
	members, err := jsonrpc.Members(raw)
	if err != nil {
		return d
	}
	for _, m := range members {
		switch m.Name {
		case "title":
			json.Unmarshal(m.Value, &d.Title) //nolint:errcheck // it counts as not there
		case "description":
			json.Unmarshal(m.Value, &d.Description) //nolint:errcheck // likewise
		}
	}
	return d
}

// param is a parameter of a tool.
type param struct {
	name, kind, text string
	required         bool
}

// parameters returns the parameters in the order of the schema.
func (d definition) parameters() []param {
	members, err := jsonrpc.Members(d.Input.Properties)
	if err != nil {
		return nil
	}
	var required []string
	if json.Unmarshal(d.Input.Required, &required) != nil {
		required = nil
	}
	var all []param
	for _, m := range members {
		var p struct {
			Type        any             `json:"type"`
			Enum        json.RawMessage `json:"enum"`
			Description string          `json:"description"`
			Items       struct {
				Type any `json:"type"`
			} `json:"items"`
		}
		one := param{name: m.Name, required: slices.Contains(required, m.Name)}
		if json.Unmarshal(m.Value, &p) == nil {
			one.kind, one.text = typeText(p.Type), p.Description
			if one.kind == "array" {
				one.kind = strings.TrimSpace(typeText(p.Items.Type) + "[]")
			}
			var choices bytes.Buffer
			if len(p.Enum) > 0 && len(p.Enum) <= 120 && json.Compact(&choices, p.Enum) == nil {
				one.kind = strings.Trim(strings.ReplaceAll(choices.String(), `","`, `"|"`), "[]")
			}
		}
		all = append(all, one)
	}
	return all
}

// typeText returns the text for the member type of a property: a name, names except
// null joined with |, or any.
func typeText(kind any) string {
	switch kind := kind.(type) {
	case string:
		return kind
	case []any:
		var names []string
		for _, one := range kind {
			if name, ok := one.(string); ok && name != "null" {
				names = append(names, name)
			}
		}
		return strings.Join(names, "|")
	}
	return "any"
}

// maxShownParameters bounds the parameters in a search result.
const maxShownParameters = 12

// signature returns the parameters as text for a model: required ones first, optional
// ones with a ?; "none" without parameters.
func (d definition) signature() string {
	all := d.parameters()
	if len(all) == 0 {
		return "none"
	}
	slices.SortStableFunc(all, func(a, b param) int {
		switch {
		case a.required && !b.required:
			return -1
		case b.required && !a.required:
			return 1
		}
		return 0
	})
	var parts []string
	for _, p := range all[:min(len(all), maxShownParameters)] {
		mark := "?"
		if p.required {
			mark = ""
		}
		parts = append(parts, p.name+mark+" "+p.kind)
	}
	if len(all) > maxShownParameters {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

// summary returns the first sentence of the description, at most 160 characters;
// without a description the title.
func (d definition) summary() string {
	const most = 160
	text := strings.Join(strings.Fields(d.Description), " ")
	if text == "" {
		text = d.Title
	}
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i+1]
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}
