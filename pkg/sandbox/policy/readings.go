package policy

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// reading is one choice of values for the variables in a command.
type reading map[string]varValue

// varValue is the content of a variable in one reading.
type varValue struct {
	state valueState
	text  string // only if state is valueKnown
}

// valueState says whether a variable has a value in a reading.
type valueState int

const (
	valueUnknown valueState = iota // set, or perhaps unset
	valueKnown                     // varValue.text
	valueUnset                     // as if never assigned: a default word applies
)

// readings returns all ways to read the words: every combination of their
// variables' values. Variables that would make more than maxReadings
// combinations count as unknown. Words without variables have one reading. nil
// words are ignored.
func (s *shellText) readings(words ...*syntax.Word) []reading {
	var names []string
	withDefault := map[string]bool{}
	for _, word := range words {
		if word == nil {
			continue
		}
		for _, part := range word.Parts {
			visitVariables(part, func(p *syntax.ParamExp) {
				name := p.Param.Value
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				withDefault[name] = withDefault[name] || hasDefaultWord(p)
			})
		}
	}
	all := []reading{{}}
	for _, name := range names {
		options := s.vars.possibleValues(name, withDefault[name])
		if len(all)*len(options) > maxReadings {
			options = []varValue{{state: valueUnknown}}
		}
		next := make([]reading, 0, len(all)*len(options))
		for _, base := range all {
			for _, option := range options {
				reading := make(reading, len(base)+1)
				for key, value := range base {
					reading[key] = value
				}
				reading[name] = option
				next = append(next, reading)
			}
		}
		all = next
	}
	return all
}

// visitVariables calls visit for each plain expansion in a part of a word whose
// value, or default word, becomes part of the word.
func visitVariables(part syntax.WordPart, visit func(*syntax.ParamExp)) {
	switch part := part.(type) {
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			visitVariables(inner, visit)
		}
	case *syntax.ParamExp:
		if part.Param != nil && (part.Exp == nil || hasDefaultWord(part)) {
			visit(part)
			if part.Exp != nil && part.Exp.Word != nil {
				for _, inner := range part.Exp.Word.Parts {
					visitVariables(inner, visit)
				}
			}
		}
	}
}
