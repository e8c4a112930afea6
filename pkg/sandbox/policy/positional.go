package policy

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// maxSetLists bounds the lists of positional parameters that are tried.
const maxSetLists = 4 // lists of positional parameters that are tried

// recordSet records the positional parameters that set assigns, and those that
// shift leaves of them.
func (s *shellText) recordSet(builtin string, args []field) {
	switch {
	case builtin == "shift":
		for _, list := range slices.Clone(s.setLists) {
			if len(list) > 1 {
				s.addSetList(list[1:])
			}
		}
	case builtin == "set":
		for len(args) > 0 && len(args[0].text) > 1 && (args[0].text[0] == '-' || args[0].text[0] == '+') {
			end := args[0].is("--")
			if args = args[1:]; end {
				break
			}
		}
		if len(args) > 0 {
			s.addSetList(args)
		}
	}
}

// addSetList adds a list to setLists, unless it is there already or there are
// maxSetLists.
func (s *shellText) addSetList(list []field) {
	same := func(other []field) bool { return slices.Equal(list, other) }
	if len(s.setLists) < maxSetLists && !slices.ContainsFunc(s.setLists, same) {
		s.setLists = append(s.setLists, list)
	}
}

// checkWithSetLists checks a command that uses positional parameters with each
// list that set may have assigned. Which list it is at run time is not known,
// so only certain matches of rules count.
func (s *shellText) checkWithSetLists(words []*syntax.Word) {
	if len(s.setLists) == 0 || s.positional != nil || !usesPositional(words) {
		return
	}
	for _, list := range s.setLists {
		s.positional = list
		var fields []field
		if readings := s.readings(words...); len(readings) > 0 {
			fields = s.expandFields(words, readings[0])
		}
		s.positional = nil
		s.checkCertainMatches(false, func(inner *shellText) { inner.checkCommand(fields, nil, true) })
	}
}

// usesPositional reports whether words contain $1 to $9, $@ or $*.
func usesPositional(words []*syntax.Word) (found bool) {
	for _, word := range words {
		for _, part := range word.Parts {
			visitVariables(part, func(p *syntax.ParamExp) {
				name := p.Param.Value
				found = found || name == "@" || name == "*" || len(name) == 1 && name[0] >= '1' && name[0] <= '9'
			})
		}
	}
	return found
}
