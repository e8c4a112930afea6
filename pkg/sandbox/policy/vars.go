package policy

import (
	"slices"
	"strings"
)

// variables holds the assignments of a text, in any order: every constant that a
// variable may hold somewhere in the text.
type variables struct {
	known map[string]*variable
	sure  map[string]bool // assigned on every way to where the check stands
	// presumed: what is assigned anywhere counts as assigned for sure.
	presumed bool
}

type variable struct {
	values []string
	open   bool    // may hold something else, too
	number bool    // may hold a number that arithmetic made
	array  []field // as assigned by the one a=(…)
	arrays int
}

const (
	maxValues     = 16
	maxValueBytes = 1 << 16
	maxRounds     = 8 // through assignments that use each other
)

// ofBash are variables that bash itself sets, whatever the text assigns.
var ofBash = strings.Fields(`_ REPLY MAPFILE OPTARG OPTIND BASH_REMATCH COPROC PWD OLDPWD DIRSTACK PIPESTATUS FUNCNAME RANDOM SRANDOM
	SECONDS LINENO EPOCHSECONDS EPOCHREALTIME BASH_COMMAND BASH_ARGV BASH_ARGC BASH_SOURCE BASH_LINENO BASH_SUBSHELL BASHPID BASH_EXECUTION_STRING
	HISTCMD GROUPS COLUMNS LINES BASH_ALIASES BASH_CMDS`)

// initial holds the values that variables most likely have before a text
// assigns them.
var initial = map[string]string{"IFS": " \t\n", "BASH": "/bin/bash", "SHELL": "/bin/bash"}

func newVariables() *variables {
	return &variables{known: map[string]*variable{}, sure: map[string]bool{}}
}

// within returns the variables for a text inside: assignments are shared,
// what is sure there is not sure outside.
func (v *variables) within() *variables {
	sure := make(map[string]bool, len(v.sure))
	for name := range v.sure {
		sure[name] = true
	}
	return &variables{known: v.known, sure: sure}
}

func (v *variables) get(name string) *variable {
	if v.known[name] == nil {
		v.known[name] = &variable{}
	}
	return v.known[name]
}

func (v *variables) set(name string, value field) {
	target := v.get(name)
	switch {
	case value.unknown() || len(target.values) >= maxValues || len(value.text) > maxValueBytes:
		target.open = true
	case !slices.Contains(target.values, value.text):
		target.values = append(target.values, value.text)
	}
}

// array returns an array that is assigned once, as a whole.
func (v *variables) array(name string) ([]field, bool) {
	target := v.known[name]
	if target == nil || target.arrays != 1 || target.open || !v.sure[name] || v.elsewhere(name) {
		return nil, false
	}
	return target.array, true
}

// elsewhere reports whether a variable may be set without its name in the text:
// by bash itself, or by a builtin that is given a name that is not known.
func (v *variables) elsewhere(name string) bool {
	return v.known[anything] != nil || slices.Contains(ofBash, name)
}

// size grows with all that is learnt about the variables.
func (v *variables) size() (n int) {
	for _, one := range v.known {
		n += 1 + len(one.values)
		for _, more := range []bool{one.open, one.number} {
			if more {
				n++
			}
		}
	}
	return n
}

// options returns what the variable may be.
func (v *variables) options(name string, withDefault bool) []bound {
	var options []bound
	target := v.known[name]
	if target != nil {
		for _, text := range target.values {
			options = append(options, bound{valueKnown, text})
		}
	}
	if text, ok := initial[name]; ok && (target == nil || !v.sure[name]) && v.known[anything] == nil {
		options = append(options, bound{valueKnown, text})
		if target == nil {
			return options
		}
	}
	if target == nil || target.open || target.number || !v.sure[name] && !v.presumed || v.elsewhere(name) {
		options = append(options, bound{state: valueUnknown})
		if withDefault {
			options = append(options, bound{state: valueUnset})
		}
	}
	return options
}
