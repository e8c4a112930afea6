package gitfile

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// RererePaths lists the paths of MERGE_RR, the file in which git notes the
// conflicts whose resolution it will record or reuse (git-rerere(1)), in order.
// They are relative to the top of the work tree. git commit, merge, rebase and
// am write recorded resolutions to these paths without checking them (merge in
// git's rerere.c). ok is false for a file that git does not write (write_rr in
// rerere.c).
func RererePaths(mergeRR []byte) (paths []string, ok bool) {
	for entry := range strings.SplitSeq(string(mergeRR), "\x00") {
		if entry == "" {
			continue
		}
		found := reuseListEntry().FindStringSubmatch(entry)
		if found == nil {
			return paths, false
		}
		paths = append(paths, found[1])
	}
	return paths, true
}

// reuseListEntry is an entry of MERGE_RR: an object name, the number of a variant
// other than the first, and a path. Git's read_rr also accepts other numbers,
// such as -1.
var reuseListEntry = lazyregexp.New(`^(?:[0-9a-f]{40}|[0-9a-f]{64})(?:\.[0-9]{1,9})?\t((?s:.+))$`)
