package changes_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// listing shows a tree as the command sees it. It does not round times.
const listing = `find . -path ./.git/objects -prune -o ! -type d -printf '%p %y %m %T@ %l %s\n' | sort; find . -type d -printf '%p %m %T@\n' | sort; find . -type f ! -path './.git/objects/*' -exec sha256sum {} + | sort -k2`

const gitListing = "; git status --porcelain 2>&1; git fsck --no-dangling 2>&1"

// differing matches lines that differ between two runs: git's index and logs
// contain inodes and times.
var differing = regexp.MustCompile(`(?m)^\./\.git(/index)? .*\n?|^.* \./\.git/index\n?`)

// withoutTimes describes the tree without the parts that differ between two
// runs of a sequence.
func withoutTimes(t *testing.T, b *bench) string {
	return differing.ReplaceAllString(b.run(nil, `find . -path ./.git/objects -prune -o -printf '%p %y %m %l\n' | sort; find . -type f ! -path './.git/objects/*' -exec sha256sum {} + | sort -k2; git status --porcelain; git log --oneline --all | sort; git fsck --no-dangling`), "")
}

// TestRandomSequences compares three uses of the same commands: run in one
// tree, applied to a second one, and discarded from it. CHANGES_SEQUENCES is
// the number of sequences, CHANGES_SEQUENCES_FROM their first seed.
func TestRandomSequences(t *testing.T) {
	kept, layered := newBench(t), newBench(t)
	layered.alone = true
	for _, seed := range sandboxtest.Seeds(t, "CHANGES_SEQUENCES", 6) {
		r := rand.New(rand.NewPCG(seed, 16))
		for _, b := range []*bench{kept, layered} {
			b.RemoveFiles()
			b.run(nil, sandboxtest.GitSettings+sandboxtest.InitialTreeScript)
		}
		before := sandboxtest.DescribeTree(t, layered.Root)
		discarded, err := layered.store.Create([]string{layered.Root})
		require.NoError(t, err)
		set, err := layered.store.Create([]string{layered.Root})
		require.NoError(t, err)
		var told []string
		for range 1 + r.IntN(4) {
			script := sandboxtest.RandomScript(r)
			told = append(told, script)
			layered.told = fmt.Sprintf("seed %d:\n%s", seed, strings.Join(told, "\n--\n"))
			kept.run(nil, sandboxtest.GitSettings+script)
			layered.run(discarded, sandboxtest.GitSettings+script)
			layered.run(set, sandboxtest.GitSettings+script)
		}
		why := layered.told
		require.Equal(t, before, sandboxtest.DescribeTree(t, layered.Root), why)
		require.NoError(t, discarded.Discard())
		require.Equal(t, before, sandboxtest.DescribeTree(t, layered.Root), why)
		seen := layered.run(set, listing+gitListing)
		report, err := set.Apply(nil, nil)
		require.NoError(t, err, why)
		require.Zero(t, report.Remaining, why)
		require.Equal(t, differing.ReplaceAllString(seen, ""), differing.ReplaceAllString(layered.run(nil, listing+gitListing), ""), why)
		require.Equal(t, withoutTimes(t, kept), withoutTimes(t, layered), why)
		entries, err := filepath.Glob(filepath.Join(layered.dir, "*"))
		require.NoError(t, err)
		require.Empty(t, entries, why)
	}
}
