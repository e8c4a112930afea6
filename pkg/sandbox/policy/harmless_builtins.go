package policy

import (
	"slices"
	"strings"
)

// isHarmlessBuiltin reports whether a builtin called name has no effect outside
// the shell, so that it needs no allow rule. Files that it writes are limited
// by the sandbox.
func isHarmlessBuiltin(name string) bool {
	return slices.Contains(strings.Fields(`: . [ alias bg bind break builtin caller cd command compgen complete
		compopt continue coproc declare dirs disown echo enable eval exec exit export false fg getopts hash help
		history jobs let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt
		source suspend test times trap true type typeset ulimit umask unalias unset wait`), name)
}
