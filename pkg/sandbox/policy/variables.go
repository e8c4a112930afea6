package policy

import (
	"slices"
	"strings"
)

// variables holds what the variables of a text may contain: every constant that
// the text assigns anywhere, in any order.
type variables struct {
	byName         map[string]*variable // the entry unknownText: assignments to names that are not known
	assigned       map[string]bool      // variables that are surely assigned before the current statement
	assumeAssigned bool                 // treat every variable with an assignment as surely assigned
}

// variable holds the possible values of one variable.
type variable struct {
	values           []string // known constants, at most maxVariableValues
	mayBeOther       bool     // may also hold a value that is not in values
	mayBeNumber      bool     // may also hold a number that arithmetic computed
	array            []field  // the elements by the last assignment name=(…)
	arrayAssignments int      // number of assignments name=(…)
}

const (
	maxVariableValues = 16      // constants of one variable
	maxValueBytes     = 1 << 16 // of one constant
	maxCollectRounds  = 8       // through assignments that use each other
)

// setByBash are variables that bash itself sets, whatever the text assigns.
var setByBash = strings.Fields(`_ REPLY MAPFILE OPTARG OPTIND BASH_REMATCH COPROC PWD OLDPWD DIRSTACK PIPESTATUS FUNCNAME RANDOM SRANDOM
	SECONDS LINENO EPOCHSECONDS EPOCHREALTIME BASH_COMMAND BASH_ARGV BASH_ARGC BASH_SOURCE BASH_LINENO BASH_SUBSHELL BASHPID BASH_EXECUTION_STRING
	HISTCMD GROUPS UID EUID PPID SHELLOPTS BASHOPTS COLUMNS LINES BASH_ALIASES BASH_CMDS`)

// initialValues holds the values that variables most likely have before a text
// assigns them.
var initialValues = map[string]string{"IFS": " \t\n", "BASH": "/bin/bash", "SHELL": "/bin/bash"}

// newVariables returns variables without any assignments.
func newVariables() *variables {
	return &variables{byName: map[string]*variable{}, assigned: map[string]bool{}}
}

// withOwnAssigned returns the variables for an inner text: it shares the values,
// and has a copy of assigned, since what is surely assigned inside is not so
// outside.
func (v *variables) withOwnAssigned() *variables {
	sure := make(map[string]bool, len(v.assigned))
	for name := range v.assigned {
		sure[name] = true
	}
	return &variables{byName: v.byName, assigned: sure}
}

// forOtherProcess returns the variables for the text of another shell: it shares the
// values, and none is surely assigned, since a variable may not be exported.
func (v *variables) forOtherProcess() *variables {
	return &variables{byName: v.byName, assigned: map[string]bool{}}
}

// getOrAdd returns the variable of that name, which it adds without values if
// necessary.
func (v *variables) getOrAdd(name string) *variable {
	if v.byName[name] == nil {
		v.byName[name] = &variable{}
	}
	return v.byName[name]
}

// addValue adds a value that a variable may contain. A value that is unknown,
// too long or one too many marks the variable as mayBeOther.
func (v *variables) addValue(name string, value field) {
	target := v.getOrAdd(name)
	switch {
	case value.hasUnknown() || len(target.values) >= maxVariableValues || len(value.text) > maxValueBytes:
		target.mayBeOther = true
	case !slices.Contains(target.values, value.text):
		target.values = append(target.values, value.text)
	}
}

// constantArray returns the elements of an array. ok is false unless the array
// is surely assigned, exactly once and as a whole, and its name gets no other value.
func (v *variables) constantArray(name string) (elements []field, ok bool) {
	target := v.byName[name]
	if target == nil || target.arrayAssignments != 1 || target.mayBeOther || !v.assigned[name] || v.isSetElsewhere(name) {
		return nil, false
	}
	for _, value := range target.values { // a=x sets the first element, unset a all
		if len(target.array) == 0 || value != target.array[0].text {
			return nil, false
		}
	}
	return target.array, true
}

// isSetElsewhere reports whether a variable may be set without its name in the
// text: by bash itself, or by a builtin with a name that is not known.
func (v *variables) isSetElsewhere(name string) bool {
	return v.byName[unknownText] != nil || slices.Contains(setByBash, name)
}

// factCount returns the number of values and marks recorded so far: it grows
// with each new one, so an unchanged number means that nothing was added.
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

// possibleValues returns the values that a variable may have, at least one. An
// array that is surely assigned and empty is unset. withDefault says that it
// matters whether the variable is unset, as in ${a-word}: an unknown value is then
// listed as unset, too.
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
	if len(options) == 0 {
		options = append(options, varValue{state: valueUnset})
	}
	return options
}
