package gitfile

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// aliasCommands are commands of git without an option that runs a program that
// the settings do not name, or that writes to a path of the command line.
var aliasCommands = strings.Fields(`add blame branch cat-file checkout cherry commit describe diff log ls-files ls-tree merge-base
	name-rev reflog reset restore rev-list rev-parse shortlog show show-branch show-ref stash status switch tag whatchanged`)

// outputOption is --output, also cut short: it writes to a file of any name.
var outputOption = lazyregexp.New(`(^|\s)--ou(t|=|\s|$)`)

// isPlainAlias reports whether an alias is a plain command of git. Others can
// begin with -c and any setting, or be a command that runs its arguments.
func isPlainAlias(value string) bool {
	words := strings.Fields(value)
	unquoted := strings.NewReplacer(`"`, "", "'", "").Replace(value)
	return len(words) == 0 || slices.Contains(aliasCommands, words[0]) && !outputOption().MatchString(unquoted) && !strings.ContainsAny(value, "\\\n")
}
