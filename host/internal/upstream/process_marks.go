package upstream

import (
	"crypto/rand"
	"slices"
	"strings"
)

// markName is the environment variable that identifies the processes of a server: the
// marks of all hosts above it, separated by commas.
const markName = "TOOLROOM_RUN"

// newMark returns a new random mark.
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
