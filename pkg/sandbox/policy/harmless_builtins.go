package policy

import (
	"slices"
	"strings"
)

// harmless reports whether a builtin does nothing outside the shell, so that
// no allow-list needs to name it. Files it writes are the kernel's matter.
func isHarmlessBuiltin(base string) bool {
	return slices.Contains(strings.Fields(`: . [ alias bg bind break builtin caller cd command compgen complete
		compopt continue coproc declare dirs disown echo enable eval exec exit export false fg getopts hash help
		history jobs let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt
		source suspend test times trap true type typeset ulimit umask unalias unset wait`), base)
}
