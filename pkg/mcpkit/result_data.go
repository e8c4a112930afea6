package mcpkit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxMetaBytes bounds the metadata of a text result.
const maxMetaBytes = 64 << 10

// setProgramData sets the parts of res for programs: Details and, for a tool
// made by Tool.Structured, Structured. Metadata that does not fit Def.Output is
// omitted and logged, since strict clients would drop the whole answer.
// res.Text must be final.
func (t *Tool) setProgramData(res *CallResult, meta any, err error) {
	members := append(t.fitErrorExtra(err), t.fitMeta(meta)...)
	members = dropRepeatedNames(members)
	res.Details = nil
	if len(members) > 0 {
		res.Details = objectNode(members).raw
	}
	if t.addsStructured {
		res.Structured, res.isStructuredAnswer = structuredAnswer(res, members), true
	}
}

// dropRepeatedNames removes members that repeat the name of an earlier member.
func dropRepeatedNames(members []jsonMember) []jsonMember {
	seen := make(map[string]bool, len(members))
	return slices.DeleteFunc(members, func(m jsonMember) bool {
		again := seen[m.name]
		seen[m.name] = true
		return again
	})
}

// fitMeta returns the members of meta that fit Def.Output, and logs the others. It
// returns nil, and logs that, without Def.Output and above maxMetaBytes.
func (t *Tool) fitMeta(meta any) []jsonMember {
	if meta == nil {
		return nil
	}
	if t.output == nil {
		t.warnf("metadata without Def.Output is not sent")
		return nil
	}
	members, err := t.fitOutput(meta, false)
	if err != nil {
		t.warnf("%v", err)
	}
	if size := len(objectNode(members).raw); size > maxMetaBytes {
		t.warnf("metadata of %d bytes is too much", size)
		return nil
	}
	return members
}

// fitErrorExtra returns the extra values of an error with a code, by name, that
// fit Def.Output, and logs the others.
func (t *Tool) fitErrorExtra(err error) []jsonMember {
	var coded *toolerr.Error
	if !errors.As(err, &coded) {
		return nil
	}
	var out []jsonMember
	extra := coded.Extra()
	for _, name := range sortedKeys(extra) {
		raw, bad := jsonrpc.Marshal(extra[name])
		if bad != nil {
			continue
		}
		value, bad := parseJSON(raw)
		if bad == nil {
			if value, bad = t.fitOutputMember(name, value); bad == nil && value != nil {
				out = append(out, jsonMember{name, value})
			}
		}
		if bad != nil {
			t.warnf("error metadata %s: %v", name, bad)
		}
	}
	return out
}

// sortedKeys returns the keys of m, sorted.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// fitOutputMember converts a top-level member to the form of Def.Output. A nil
// result without an error means that the member is omitted.
func (t *Tool) fitOutputMember(name string, value *jsonNode) (fitted *jsonNode, err error) {
	if t.output == nil {
		return value, nil
	}
	if t.output.kind == kindMap {
		return fitNode(t.output.items, value, nil)
	}
	if i, known := t.output.byName[name]; known {
		return fitNode(t.output.properties[i].schema, value, (*argPath)(nil).member(name))
	}
	return value, nil
}

// fitOutput converts v, which must encode as an object, to the members of the
// form of Def.Output; null has none. If failOnMisfit is set, a member that does
// not fit fails the whole. Otherwise such members are omitted, and misfit
// describes the last of them. If v cannot be encoded, or not as an object,
// members is nil, and misfit says so.
func (t *Tool) fitOutput(v any, failOnMisfit bool) (members []jsonMember, misfit error) {
	raw, err := jsonrpc.Marshal(v)
	if err != nil {
		return nil, err
	}
	n, err := parseJSON(raw)
	if err != nil {
		return nil, err
	}
	if n.isNull() {
		return nil, nil
	}
	if n.kind != '{' {
		return nil, fmt.Errorf("the data must be an object, got %s", n.describe())
	}
	var kept []jsonMember
	for _, m := range n.members {
		value, err := t.fitOutputMember(m.name, m.value)
		if err != nil {
			misfit = err
			continue
		}
		if value != nil {
			kept = append(kept, jsonMember{m.name, value})
		}
	}
	if misfit != nil && failOnMisfit {
		return nil, misfit
	}
	return kept, misfit
}

// fitNode converts encoding/json's output for a Go value to the schema's form:
// a nil slice becomes an empty list instead of null, a nil pointer is omitted
// (a nil result), a duration becomes text. The error describes a value that
// does not fit.
func fitNode(s *schema, n *jsonNode, at *argPath) (fitted *jsonNode, err error) {
	use := s
	s = s.resolveRef()
	switch {
	case n.isNull() && s.kind == kindList:
		return &jsonNode{kind: '[', raw: []byte("[]")}, nil
	case n.isNull() && s.kind == kindMap:
		return &jsonNode{kind: '{', raw: []byte("{}")}, nil
	case n.isNull() && s.kind == kindBytes:
		return stringNode(""), nil
	case n.isNull() && s.kind != kindAny:
		return nil, nil
	case s.kind == kindDuration && n.kind == '0':
		value, whole, fits := parseWholeNumber(string(n.raw))
		if whole && fits {
			return stringNode(time.Duration(value.asBound().integer).String()), nil
		}
	case s.kind == kindObject && n.kind == '{':
		return fitObject(s, n, at)
	case s.kind == kindMap && n.kind == '{':
		var members []jsonMember
		for _, m := range n.members {
			value, err := fitNode(s.items, m.value, at.member(m.name))
			if err != nil {
				return nil, err
			}
			if value != nil {
				members = append(members, jsonMember{m.name, value})
			}
		}
		return objectNode(members), nil
	case s.kind == kindList && n.kind == '[':
		return fitList(s, n, at)
	}
	c := checker{}
	c.check(use, n, at)
	if len(c.faults) > 0 {
		return nil, errors.New(c.faults[0].text)
	}
	return n, nil
}

// fitObject converts an object and its members, as fitNode does.
func fitObject(s *schema, n *jsonNode, at *argPath) (*jsonNode, error) {
	var members []jsonMember
	for _, m := range n.members {
		value := m.value
		if i, known := s.byName[m.name]; known {
			var err error
			if value, err = fitNode(s.properties[i].schema, value, at.member(m.name)); err != nil {
				return nil, err
			}
		}
		if value != nil {
			members = append(members, jsonMember{m.name, value})
		}
	}
	return objectNode(members), nil
}

// fitList converts a list and its items, as fitNode does.
func fitList(s *schema, n *jsonNode, at *argPath) (*jsonNode, error) {
	raw := []byte{'['}
	c := checker{}
	c.checkLength(s, len(n.items), "items", at)
	if len(c.faults) > 0 {
		return nil, errors.New(c.faults[0].text)
	}
	for i, item := range n.items {
		value, err := fitNode(s.items, item, at.item(i))
		if err == nil && value == nil {
			err = fmt.Errorf("%s is null, where %s belongs", printable(at.item(i).String()), typeWithArticle(s.items))
		}
		if err != nil {
			return nil, err
		}
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, value.raw...)
	}
	return &jsonNode{kind: '[', raw: append(raw, ']')}, nil
}
