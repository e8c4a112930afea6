package mcpkit

import (
	"fmt"
	"slices"
)

// checker checks arguments against their schema. It collects every fault and
// every tolerated deviation, and returns the arguments in the schema's form.
type checker struct {
	tolerant      bool // accept deviations whose meaning is clear, such as "10" for 10, with a note
	refuseUnknown bool // an unknown argument is a fault, not ignored
	faults        []fault
	notes         []string // tolerated deviations
	renamedArgs   []string // arguments given under another name than the schema's
	droppedNotes  int      // number of notes beyond the limit
	droppedFaults int      // number of faults beyond the limit
	nullArgs      []string // optional arguments given as null, for one note
}

// faultf records a fault of the value at at. The format continues a sentence
// that begins with its position.
func (c *checker) faultf(at *argPath, format string, args ...any) {
	pointer := at.String()
	text := fmt.Sprintf(format, args...)
	if pointer != "" {
		text = printable(pointer) + " " + text
	} else {
		text = "the arguments " + text
	}
	c.addFault(fault{pointer: pointer, text: text})
}

// notef records a note about a tolerated deviation of the value at at.
func (c *checker) notef(at *argPath, format string, args ...any) {
	if len(c.notes) >= 10*maxFaults {
		c.droppedNotes++
		return
	}
	where := printable(at.String())
	if where == "" {
		where = "arguments"
	}
	c.notes = append(c.notes, where+": "+fmt.Sprintf(format, args...))
}

// check returns n in the form of s, and records its faults. After a fault, use
// the returned node only to find more faults.
func (c *checker) check(s *schema, n *jsonNode, at *argPath) *jsonNode {
	use := s
	s = s.resolveRef()
	if !kindAccepts(s.kind, n.kind) {
		if better, ok := c.coerce(s, n, at); ok {
			n = better
		} else {
			c.faultf(at, "must be %s, got %s", typeWithArticle(s), n.describe())
			return n
		}
	}
	switch s.kind {
	case kindObject:
		n = c.checkObject(s, n, at)
	case kindMap:
		n = c.checkMap(s, n, at)
	case kindList:
		n = c.checkList(s, n, at)
	case kindString, kindText, kindBytes, kindDuration:
		n = c.checkString(s, n, at)
	case kindInteger, kindNumber:
		c.checkNumber(s, n, at)
	case kindAny:
		c.checkAny(n, at)
	}
	if len(use.enum) > 0 {
		n = c.checkEnum(use, n, at)
	}
	return n
}

// kindAccepts reports whether a schema of kind k accepts JSON values of kind
// got, as in jsonNode.kind.
func kindAccepts(k kind, got byte) bool { return k == kindAny || got == jsonKind(k) }

// jsonKind returns the kind of JSON value for a schema kind, as in
// jsonNode.kind; 0 means any.
func jsonKind(k kind) byte {
	switch k {
	case kindAny:
		return 0
	case kindObject, kindMap:
		return '{'
	case kindList:
		return '['
	case kindString, kindText, kindBytes, kindDuration:
		return '"'
	case kindInteger, kindNumber:
		return '0'
	}
	return 't'
}

// checkObject checks an object's members by s.properties, and returns it with
// defaults and with fields set.
func (c *checker) checkObject(s *schema, n *jsonNode, at *argPath) *jsonNode {
	out := &jsonNode{kind: '{', raw: n.raw, fields: make([]*jsonNode, len(s.properties))}
	by := make([]string, len(s.properties)) // the name under which each was given
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.name] {
			c.faultf(at.member(m.name), "is given twice")
			continue
		}
		seen[m.name] = true
		i, known := c.propertyOfMember(s, n.members, m, at)
		if !known {
			c.handleUnknown(s, m, at)
			continue
		}
		p := s.properties[i]
		value := c.valueIfGiven(p, m, at)
		if value == nil {
			continue
		}
		if out.fields[i] != nil {
			if string(out.fields[i].raw) != string(value.raw) {
				c.faultf(at.member(m.name), "and %s are the same argument: give only %s", printable(by[i]), p.name)
			}
			continue
		}
		if m.name != p.name && !p.hidden { // the tool's function adds notes for hidden ones
			c.renamedArgs = append(c.renamedArgs, fmt.Sprintf("%s: taken as %s", printable(at.member(m.name).String()), p.name))
		}
		out.fields[i], by[i] = c.check(p.schema, value, at.member(m.name)), m.name
	}
	for i, p := range s.properties {
		switch {
		case out.fields[i] != nil:
		case p.defaultValue != nil && !p.required:
			out.fields[i] = p.defaultValue
		case p.required:
			c.addMissing(p, at)
		}
	}
	return out
}

// valueIfGiven returns the member's value, or nil if it means that the argument
// is not given: null and, for optional arguments, "null" or "undefined".
func (c *checker) valueIfGiven(p property, m jsonMember, at *argPath) *jsonNode {
	if m.value.isNull() && p.resolveRef().kind == kindAny && p.required {
		return m.value
	}
	absent := m.value.isNull()
	if !p.required && !absent && c.tolerant && m.value.kind == '"' && !p.verbatim {
		absent = (m.value.str == "null" || m.value.str == "undefined") && !p.isEnumValue(m.value)
	}
	if absent && p.required {
		return nil
	}
	if absent && !c.tolerant {
		return m.value
	}
	if absent {
		c.nullArgs = append(c.nullArgs, printable(at.member(m.name).String()))
		return nil
	}
	return m.value
}

// isEnumValue reports whether the enum has exactly the bytes of n.
func (s *schema) isEnumValue(n *jsonNode) bool {
	return slices.ContainsFunc(s.enum, func(e *jsonNode) bool { return string(e.raw) == string(n.raw) })
}

// addMissing records the fault that the required argument p is missing.
func (c *checker) addMissing(p property, at *argPath) {
	here := at.member(p.name)
	c.addFault(fault{pointer: here.String(), missing: true,
		text: fmt.Sprintf("missing: %s (%s, required) at %s", p.name, p.typeName(), printable(here.String()))})
}

// handleUnknown records an unknown argument: a likely misspelling as a fault,
// others as a fault or a note. It ignores arguments that explain the call.
func (c *checker) handleUnknown(s *schema, m jsonMember, at *argPath) {
	if c.tolerant && isExplanation(m.name, m.value) {
		return
	}
	if near := nearestName(m.name, s.acceptedNames()); near != "" {
		c.faultf(at.member(m.name), "is not an argument: did you mean %s?", near)
		return
	}
	if c.refuseUnknown || !c.tolerant {
		c.faultf(at.member(m.name), "is not an argument%s", c.noArgumentsHint(s))
		return
	}
	c.notef(at.member(m.name), "unknown argument ignored")
}

// noArgumentsHint returns the end of a message for a tool without arguments;
// else "".
func (c *checker) noArgumentsHint(s *schema) string {
	if len(s.properties) == 0 {
		return ": the tool takes none"
	}
	return ""
}

// acceptedNames returns the names of the visible properties, then their
// aliases.
func (s *schema) acceptedNames() []string {
	var names []string
	for _, p := range s.properties {
		if !p.hidden {
			names = append(names, p.name)
		}
	}
	for _, p := range s.properties {
		if !p.hidden {
			names = append(names, p.aliases...)
		}
	}
	return names
}

// checkMap checks the members of a map by s.items, their number, and that no name is
// repeated. It returns n with the checked members; what is wrong is added to the faults
// of c. at is the place of n, for the messages.
func (c *checker) checkMap(s *schema, n *jsonNode, at *argPath) *jsonNode {
	out := &jsonNode{kind: '{', raw: n.raw}
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		here := at.member(m.name)
		if seen[m.name] {
			c.faultf(here, "is given twice")
			continue
		}
		seen[m.name] = true
		out.members = append(out.members, jsonMember{m.name, c.check(s.items, m.value, here)})
	}
	c.checkLength(s, len(out.members), "members", at)
	return out
}

// checkList checks the items of a list by s.items, and their number.
func (c *checker) checkList(s *schema, n *jsonNode, at *argPath) *jsonNode {
	out := &jsonNode{kind: '[', raw: n.raw, items: make([]*jsonNode, 0, len(n.items))}
	for i, item := range n.items {
		out.items = append(out.items, c.check(s.items, item, at.item(i)))
	}
	c.checkLength(s, len(n.items), "items", at)
	return out
}
