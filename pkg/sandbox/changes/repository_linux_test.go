package changes_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// fullListing shows a tree as the command sees it.
const fullListing = `export LC_ALL=C; find . ! -type d -printf '%p %y %m %U:%G %T@ %l %s\n' | sort; find . -type d -printf '%p %m %U:%G %T@\n' | sort; find . -type f -exec sha256sum {} + | sort -k2`

// attributes matches those of the template in the text of sandboxtest.DescribeTree.
var attributes = regexp.MustCompile(`(?m) user\.\w+="value" <nil>`)

// TestRandomRepositories compares three uses of the same commands in a git repository
// with unusual files: run in the tree, applied to it, and discarded.
// CHANGES_REPOSITORIES is the number of sequences, CHANGES_REPOSITORIES_FROM their first
// seed.
func TestRandomRepositories(t *testing.T) {
	seeds := sandboxtest.Seeds(t, "CHANGES_REPOSITORIES", 9)
	template := sandboxtest.RepositoryTemplate(t)
	b := newBench(t)
	b.alone = true
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			b.T = t
			b.compareRepository(t, seed, template)
		})
	}
}

// compareRepository compares the three uses for the commands of a seed.
func (b *bench) compareRepository(t *testing.T, seed uint64, template string) {
	// In layers, mv copies directories without attributes, and renames of directories fail.
	steps := sandboxtest.RepositorySteps{InPlace: true, HardLinks: seed%3 != 1, DirMoves: seed%3 != 0, Renames: seed%3 == 2}
	fill := func() {
		b.FillFrom(template)
		if seed%5 != 0 {
			b.RunOutside(`for f in odd/two odd/dir/three; do cp -p $f copy; mv copy $f; done`)
		}
		if steps.DirMoves { // nobody can move a copy of it
			b.RunOutside(`chmod 700 odd/closed`)
		}
	}
	r := rand.New(rand.NewPCG(seed, 17))
	var scripts []string
	for range 1 + r.IntN(4) {
		scripts = append(scripts, steps.Script(r))
	}
	b.told = fmt.Sprintf("seed %d:\n%s", seed, strings.Join(scripts, "\n--\n"))
	began := time.Now()
	state := func() string {
		text := sandboxtest.ComparableState(t, b.Root, began)
		if seed%3 == 1 {
			text = attributes.ReplaceAllString(text, "")
		}
		return text
	}
	kept, errors := "", ""
	if seed%3 != 2 {
		fill()
		for _, script := range scripts {
			errors += b.run(nil, script)
		}
		kept = state()
	}
	fill()
	before := sandboxtest.DescribeTree(t, b.Root)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	layeredErrors := ""
	for _, script := range scripts {
		layeredErrors += b.run(set, script)
	}
	seen := b.run(set, fullListing)
	b.discardCopy(set.ID())
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root), b.told)
	list, err := set.Changes()
	require.NoError(t, err)
	report, err := set.Apply(nil, nil)
	require.NoError(t, err, "%s\n%v", b.told, report.Refused)
	require.Zero(t, report.Remaining, b.told)
	require.Equal(t, seen, b.run(nil, fullListing), b.told)
	switch {
	case seed%3 == 2:
	case errors != layeredErrors:
		// A program has failed only in one of the trees, and has said so. What it leaves
		// differs: mv copies a directory if a rename fails, and cannot remove the old one if
		// that holds a directory without write permission.
		t.Logf("the errors differ:\n%s--- in layers:\n%s", errors, layeredErrors)
	case seed%5 == 0 && slices.ContainsFunc(list, func(c changes.Change) bool { return c.OtherHardLinks() > 0 }):
		// A command has written or moved one of several hard links of the root, as the diff
		// says.
		t.Logf("the diff tells of hard links; equal: %v", kept == state())
	default:
		require.Equal(t, kept, state(), b.told)
	}
}

// discardCopy discards a copy of a set.
func (b *bench) discardCopy(id string) {
	b.T.Helper()
	dir := filepath.Join(b.dir, id)
	closed, err := filepath.Glob(filepath.Join(dir, "*/*/work/work")) // overlayfs makes it with mode 0
	require.NoError(b.T, err)
	for _, work := range closed {
		require.NoError(b.T, os.Chmod(work, 0o700))
	}
	out, err := exec.Command("cp", "-a", dir, dir+"x").CombinedOutput()
	require.NoError(b.T, err, string(out))
	discarded, err := b.store.Open(id + "x")
	require.NoError(b.T, err)
	require.NoError(b.T, discarded.Discard())
	require.NoDirExists(b.T, dir+"x")
}
