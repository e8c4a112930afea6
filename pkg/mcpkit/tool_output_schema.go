package mcpkit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// outputSchema returns the schema of structuredContent. Its root requires no
// member and has the member code, since strict clients also check errors
// against it.
func outputSchema(t reflect.Type) (*schema, error) {
	s, err := buildSchema(t, true)
	if err != nil {
		return s, fmt.Errorf("output: %w", err)
	}
	if s.kind == kindMap {
		return s, checkMapOutput(s)
	}
	if s.kind != kindObject {
		return s, fmt.Errorf("output must be a struct or a map, not %s", t)
	}
	s.noneRequired = true
	code := schema{kind: kindString, description: "stable code of an error"}
	if i, taken := s.byName["code"]; taken {
		if s.properties[i].kind != kindString || len(s.properties[i].enum) > 0 {
			return s, errors.New("output: code is the error's code, a string")
		}
		return s, nil
	}
	s.byName["code"] = len(s.properties)
	s.properties = append(s.properties, property{name: "code", schema: &code})
	return s, nil
}

// isRecursive reports whether the type refers to itself, or contains a type that
// does.
func (s *schema) isRecursive() bool {
	return s.kind == kindRef || s.items != nil && s.items.isRecursive() ||
		slices.ContainsFunc(s.properties, func(p property) bool { return p.isRecursive() })
}

// structuredSchema returns the schema of structuredAnswer's object.
func (t *Tool) structuredSchema() *schema {
	out := schema{kind: kindObject, byName: map[string]int{}, noneRequired: true}
	if t.output != nil {
		out.defs = t.output.defs
	}
	add := func(p property) {
		if _, taken := out.byName[p.name]; !taken {
			out.byName[p.name] = len(out.properties)
			out.properties = append(out.properties, p)
		}
	}
	if t.row != nil {
		add(property{name: "results", schema: &schema{kind: kindList, items: t.row}})
	}
	add(property{name: "text", schema: &schema{kind: kindString, description: "the answer as text, if it has no rows"}})
	add(property{name: "code", schema: &schema{kind: kindString, description: "stable code of an error"}})
	if t.output != nil && t.output.kind == kindObject {
		for _, p := range t.output.properties {
			add(p)
		}
	}
	return &out
}

// checkMapOutput returns an error if the code of an error does not fit the
// values of a map.
func checkMapOutput(s *schema) error {
	if k := s.items.resolveRef().kind; k != kindString && k != kindAny {
		return errors.New("output: an error's code does not fit into a map of " + plural(s.items.typeName()) + ": use a struct")
	}
	return nil
}
