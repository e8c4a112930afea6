package policy

import (
	"slices"
	"strings"
)

// variables holds the assignments of a text, in any order: every constant that a
// variable may hold somewhere in the text.
type variables struct {
	byName   map[string]*variable
	assigned map[string]bool // assigned on every way to where the check stands
	// presumed: what is assigned anywhere counts as assigned for sure.
	assumeAssigned bool
}

type variable struct {
	values           []string
	mayBeOther       bool    // may hold something else, too
	mayBeNumber      bool    // may hold a number that arithmetic made
	array            []field // as assigned by the one a=(…)
	arrayAssignments int
}

const (
	maxVariableValues = 16
	maxValueBytes     = 1 << 16
	maxCollectRounds  = 8 // through assignments that use each other
)

// ofBash are variables that bash itself sets, whatever the text assigns.
var setByBash = strings.Fields(`_ REPLY MAPFILE OPTARG OPTIND BASH_REMATCH COPROC PWD OLDPWD DIRSTACK PIPESTATUS FUNCNAME RANDOM SRANDOM
	SECONDS LINENO EPOCHSECONDS EPOCHREALTIME BASH_COMMAND BASH_ARGV BASH_ARGC BASH_SOURCE BASH_LINENO BASH_SUBSHELL BASHPID BASH_EXECUTION_STRING
	HISTCMD GROUPS COLUMNS LINES BASH_ALIASES BASH_CMDS`)

// initial holds the values that variables most likely have before a text
// assigns them.
var initialValues = map[string]string{"IFS": " \t\n", "BASH": "/bin/bash", "SHELL": "/bin/bash"}

func newVariables() *variables {
	return &variables{byName: map[string]*variable{}, assigned: map[string]bool{}}
}

// within returns the variables for a text inside: assignments are shared,
// what is sure there is not sure outside.
func (v *variables) forInnerText() *variables {
	sure := make(map[string]bool, len(v.assigned))
	for name := range v.assigned {
		sure[name] = true
	}
	return &variables{byName: v.byName, assigned: sure}
}

func (v *variables) getOrAdd(name string) *variable {
	if v.byName[name] == nil {
		v.byName[name] = &variable{}
	}
	return v.byName[name]
}

func (v *variables) addValue(name string, value field) {
	target := v.getOrAdd(name)
	switch {
	case value.hasUnknown() || len(target.values) >= maxVariableValues || len(value.text) > maxValueBytes:
		target.mayBeOther = true
	case !slices.Contains(target.values, value.text):
		target.values = append(target.values, value.text)
	}
}

// array returns an array that is assigned once, as a whole.
func (v *variables) constantArray(name string) ([]field, bool) {
	target := v.byName[name]
	if target == nil || target.arrayAssignments != 1 || target.mayBeOther || !v.assigned[name] || v.isSetElsewhere(name) {
		return nil, false
	}
	return target.array, true
}

// elsewhere reports whether a variable may be set without its name in the text:
// by bash itself, or by a builtin that is given a name that is not known.
func (v *variables) isSetElsewhere(name string) bool {
	return v.byName[unknownText] != nil || slices.Contains(setByBash, name)
}

// size grows with all that is learnt about the variables.
func (v *variables) factCount() (n int) {
	for _, one := range v.byName {
		n += 1 + len(one.values)
		for _, more := range []bool{one.mayBeOther, one.mayBeNumber} {
			if more {
				n++
			}
		}
	}
	return n
}

// options returns what the variable may be.
func (v *variables) possibleValues(name string, withDefault bool) []varValue {
	var options []varValue
	target := v.byName[name]
	if target != nil {
		for _, text := range target.values {
			options = append(options, varValue{valueKnown, text})
		}
	}
	if text, ok := initialValues[name]; ok && (target == nil || !v.assigned[name]) && v.byName[unknownText] == nil {
		options = append(options, varValue{valueKnown, text})
		if target == nil {
			return options
		}
	}
	if target == nil || target.mayBeOther || target.mayBeNumber || !v.assigned[name] && !v.assumeAssigned || v.isSetElsewhere(name) {
		options = append(options, varValue{state: valueUnknown})
		if withDefault {
			options = append(options, varValue{state: valueUnset})
		}
	}
	return options
}
