package mcpkit

import (
	"slices"
	"strings"
	"unicode"
)

// explanationNames are names of arguments in which models explain a call. A
// tool without such an argument ignores it without a note.
var explanationNames = strings.Fields("explanation description reason reasoning purpose thought instruction instructions justification goal task_progress")

// lookupProperty finds a property by the name in a call: the property's name, an alias
// or, if tolerant, either of them in camelCase or kebab-case. schemaName is the name as
// written in the schema, index that of properties. known is false, and index without
// meaning, for an unknown name.
func (s *schema) lookupProperty(name string, tolerant bool) (schemaName string, index int, known bool) {
	if index, known = s.byName[name]; known || !tolerant {
		return name, index, known
	}
	schemaName = snakeCase(name)
	index, known = s.byName[schemaName]
	return schemaName, index, known
}

// propertyOfMember returns the index of the property that m, one of the members
// of an object, is for. If several properties share the name, the value's type
// decides: regex:"a+" is the pattern, regex:true says that the pattern is a
// regular expression. A property that is also given by its own name, or whose
// type the value has only after conversion, ranks lower.
func (c *checker) propertyOfMember(s *schema, all []jsonMember, m jsonMember, at *argPath) (i int, known bool) {
	name, first, known := s.lookupProperty(m.name, c.tolerant)
	if len(s.sharedAliases[name]) == 0 || !c.tolerant {
		return first, known
	}
	best, bestRank := first, 0
	for _, i := range append([]int{first}, s.sharedAliases[name]...) {
		p, rank := s.properties[i], 0
		trial := checker{tolerant: true}
		switch trial.check(p.schema, m.value, at.member(m.name)); {
		case kindAccepts(p.resolveRef().kind, m.value.kind):
			rank = 2
		case len(trial.faults) == 0:
			rank = 1
		}
		if rank > 0 && !slices.ContainsFunc(all, func(o jsonMember) bool { return o.name == p.name && o.name != m.name }) {
			rank += 2
		}
		if rank > bestRank {
			best, bestRank = i, rank
		}
	}
	return best, true
}

// snakeCase converts oldString, OldString, oldSTRING and old-string to
// old_string. Names of one or two letters and options such as -A stay
// unchanged, since their case is significant.
func snakeCase(name string) string {
	if len(name) < 3 || len(name) > 64 || name[0] == '-' {
		return name
	}
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if r == '-' || r == ' ' {
			r = '_'
		}
		begins := unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' && runes[i-1] != '-' &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// isExplanation reports whether an unknown argument only explains the call and
// can be ignored without a note.
func isExplanation(name string, value *jsonNode) bool {
	return value.kind == '"' && slices.Contains(explanationNames, snakeCase(name))
}
