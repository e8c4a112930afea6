package upstream

import (
	"crypto/rand"
	"slices"
	"strings"
)

// markName is the environment variable by which a server's processes are
// known as such wherever they went: the marks of all hosts above, with commas.
const markName = "TOOLROOM_RUN"

// newMark returns a mark that nobody else has.
func newMark() string { return rand.Text()[:16] }

// markedEnv returns an environment with one more mark.
func markedEnv(env []string, mark string) []string {
	out := slices.Clone(env)
	for i, entry := range out {
		if outer, ok := strings.CutPrefix(entry, markName+"="); ok {
			out[i] = markName + "=" + outer + "," + mark
			return out
		}
	}
	return append(out, markName+"="+mark)
}
