package main

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// envMap returns an environment of NAME=value as a map.
func envMap(pairs []string) map[string]string {
	env := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// commandVariables are variables of the shell or of this tool that belong to
// one command and are not kept.
var commandVariables = []string{"PWD", "SHLVL", "_", "TMPDIR", "TOOLROOM_COMMAND", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "__toolroom_s",
	// With this variable, bash would not run the prologue.
	"POSIXLY_CORRECT"}

// changedVariables returns the variables that a command has set or changed, and
// the names of those that it has removed. given and after are the environments
// before and after the command.
func changedVariables(given, after map[string]string) (changed map[string]string, removed []string) {
	counts := func(name string) bool { return !slices.Contains(commandVariables, name) && isVariable(name) }
	changed = map[string]string{}
	for name, value := range after {
		if before, had := given[name]; (!had || before != value) && counts(name) {
			changed[name] = value
		}
	}
	for name := range given {
		if _, has := after[name]; !has && counts(name) {
			removed = append(removed, name)
		}
	}
	return changed, removed
}

// dropUnkeepable removes from changed the variables that the environment's filter would
// drop or change for the next command, except PATH, and returns notes about them. It
// returns nil if there are none.
func dropUnkeepable(changed map[string]string, filter proc.Environ) (notes []string) {
	if len(changed) == 0 {
		return nil
	}
	var pairs, lost []string
	for name, value := range changed {
		pairs = append(pairs, name+"="+value)
	}
	filter.Base, filter.Extra = nil, pairs
	passed, _ := filter.Build()
	ours, _ := (proc.Environ{}).Build()
	next, fixed := envMap(passed), envMap(ours)
	for name, value := range changed {
		if next[name] == value {
			continue
		}
		if name == "PATH" { // the filter drops a part of it
			lost = append(lost, "entries of PATH that commands can write to")
			continue
		}
		delete(changed, name)
		if _, known := fixed[name]; !known {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		notes = append(notes, "not kept for the next command (they look like secrets, change how programs run, or are too large): "+shorten(strings.Join(lost, ", "), 200))
	}
	return notes
}

// variablesSize returns the size of variables in an environment, in bytes.
func variablesSize(set map[string]string) (n int) {
	for name, value := range set {
		n += len(name) + len(value) + 2
	}
	return n
}
