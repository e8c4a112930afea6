package proc

import (
	"slices"
	"strings"
)

// fixedEnv holds variables set for every command, whatever the user has. They
// make programs use no pager, editor, prompt or colour, since there is no
// terminal.
var fixedEnv = [...]string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat",
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "EDITOR=true", "VISUAL=true", "DEBIAN_FRONTEND=noninteractive",
}

// Environ holds the sources from which Build makes the environment of a
// command. Variables have the form NAME=value.
type Environ struct {
	// Base holds the initial variables, as os.Environ() returns them.
	Base []string
	// Extra holds the variables of the call, which override those of Base. The
	// same filter applies to them.
	Extra []string
	// PassSecrets are names of variables to pass although they look like
	// secrets.
	PassSecrets []string
	// Writable are directories that commands may write into. Entries of PATH
	// in them are removed.
	Writable []string
	// Set holds the server's own variables. They override all others and are
	// not filtered.
	Set []string

	baseFiltered bool             // Base has already been filtered
	pathCache    *searchPathCache // nil: no cache
}

// Build returns the variables, sorted by name and each name once, and the names
// of the variables of Extra that were refused.
func (e Environ) Build() (env, refused []string) {
	values := make(map[string]string, len(e.Base)+len(e.Extra)+len(e.Set)+len(fixedEnv))
	base := e.Base
	if !e.baseFiltered {
		base = e.filterVariables(base)
	}
	for _, pair := range base {
		name, value, _ := strings.Cut(pair, "=")
		values[systemVarName(name)] = value
	}
	for _, pair := range e.Extra {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !e.mayPass(name, value) {
			refused = append(refused, name)
			continue
		}
		values[name] = value
	}
	if path, ok := values["PATH"]; ok {
		values["PATH"] = e.pathCache.removeUnsafeEntries(path, e.Writable)
	}
	if values["PATH"] == "" {
		values["PATH"] = defaultPath(values)
	}
	for _, pair := range slices.Concat(fixedEnv[:], e.Set) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, refused
}
