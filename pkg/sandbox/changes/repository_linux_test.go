package changes_test

import (
	"fmt"
	"io/fs"
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
	linked := b.linkedLines(list)
	report, err := set.Apply(nil, nil)
	require.NoError(t, err, "%s\n%v", b.told, report.Refused)
	require.Zero(t, report.Remaining, b.told)
	require.Equal(t, withoutLines(seen, linked), withoutLines(b.run(nil, fullListing), linked), b.told)
	switch {
	case seed%3 == 2:
	case errors != layeredErrors:
		// A program has failed only in one of the trees, and has said so. What it leaves
		// differs: mv copies a directory if a rename fails, and cannot remove the old one if
		// that holds a directory without write permission.
		t.Logf("the errors differ:\n%s--- in layers:\n%s", errors, layeredErrors)
	case seed%5 == 0 && slices.ContainsFunc(list, func(c changes.Change) bool { return c.OtherHardLinks() > 0 }):
		// A command has changed or moved one of several hard links of the root, as the
		// answer and the diff say.
		t.Logf("the diff tells of hard links; equal: %v", kept == state())
	default:
		require.Equal(t, kept, state(), b.told)
	}
}

// linkedLines returns the beginnings of the lines of fullListing with mode and time of the
// hard links of changed files. Applying a new mode or time changes it for all of them, as
// the answer says, while the command saw it for one.
func (b *bench) linkedLines(list []changes.Change) (lines []string) {
	b.T.Helper()
	require.NoError(b.T, filepath.WalkDir(b.Root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		rel, _ := filepath.Rel(b.Root, name)
		if slices.ContainsFunc(list, func(c changes.Change) bool {
			return c.OtherHardLinks() > 0 && c.New != nil && os.SameFile(c.Old, info)
		}) {
			lines = append(lines, "./"+rel+" f ")
		}
		return err
	}))
	return lines
}

// withoutLines returns text without the lines that begin with one of beginnings.
func withoutLines(text string, beginnings []string) string {
	var left []string
	for _, line := range strings.Split(text, "\n") {
		if !slices.ContainsFunc(beginnings, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
			left = append(left, line)
		}
	}
	return strings.Join(left, "\n")
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
