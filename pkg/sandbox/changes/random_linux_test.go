package changes_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository makes the tree that each sequence begins with.
const repository = `git init -q . && mkdir -p src/a/b doc && for i in 1 2 3 4; do seq $i 40 > src/a/f$i; seq $i 9 > doc/g$i; done
ln -s ../doc src/doc; ln -s nowhere dangling; chmod 755 src/a/f1; head -c 300000 /dev/zero | tr '\0' x > large; chmod 700 doc
git add -A; git commit -qm first`

const gitSettings = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000' GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
umask 022
`

// sequence makes a command of random steps. What a step cannot do in the tree as
// it is, it leaves alone.
func sequence(r *rand.Rand) string {
	dirs := []string{"src", "src/a", "src/a/b", "doc", "new", "new/x", "new/x/y", "."}
	files := []string{"f1", "f2", "f3", "g1", "g2", "n1", "n2", "large"}
	dir := func() string { return dirs[r.IntN(len(dirs))] }
	file := func() string { return dir() + "/" + files[r.IntN(len(files))] }
	steps := []func() string{
		func() string { return fmt.Sprintf("echo %d > %s", r.IntN(1000), file()) },
		func() string { return fmt.Sprintf("echo %d >> %s", r.IntN(1000), file()) },
		func() string { return "rm -f " + file() },
		func() string { return "rm -rf " + strings.Replace(dir(), ".", "new", 1) },
		func() string { return "mkdir -p " + dir() },
		func() string { return "mv -f " + file() + " " + file() },
		func() string { return "[ -e moved ] || mv " + dir() + " moved" },
		func() string { return "[ -e new ] || mv moved new" },
		func() string { return "mv -T src/a doc/c; mkdir src/a" },
		func() string { return fmt.Sprintf("chmod %o %s", 0o400|r.IntN(0o400), file()) },
		func() string { return fmt.Sprintf("chmod %o %s", 0o700|r.IntN(0o100), dir()) },
		func() string { return fmt.Sprintf("ln -sfn t%d %s", r.IntN(9), file()) },
		func() string { return "mkdir -p links; ln -f doc/g4 links/" + strconv.Itoa(r.IntN(3)) },
		func() string { return "f=" + file() + "; rm -rf $f; mkdir -p $f/in; echo x > $f/in/x" },
		func() string { return "f=" + dir() + "; [ $f = . ] || { rm -rf $f; echo file > $f; }" },
		func() string { return "truncate -s 2M " + file() },
		func() string { return "dd if=/dev/zero of=large bs=1 count=3 seek=100 conv=notrunc status=none" },
		func() string { return fmt.Sprintf("touch -d @%d %s", 1_600_000_000+r.IntN(1000), file()) },
		func() string { return "mkfifo new/fifo" },
		func() string { return "git add -A; git commit -qm more" },
		func() string { return fmt.Sprintf("git checkout -q -b b%d", r.IntN(4)) },
		func() string { return fmt.Sprintf("git checkout -qf b%d", r.IntN(4)) },
		func() string { return "git reset -q --hard" },
		func() string { return "git stash -q -u" },
		func() string { return "git clean -qfdx" },
		func() string { return "git rm -qrf src/a" },
		func() string { return "git gc -q" },
	}
	var lines []string
	for range 1 + r.IntN(6) {
		lines = append(lines, "{ "+steps[r.IntN(len(steps))]()+"; } 2>/dev/null")
	}
	return strings.Join(lines, "\n")
}

// listing shows a tree as the command sees it. The kernel rounds no time.
const listing = `find . -path ./.git/objects -prune -o -printf '%p %y %m %T@ %l %s\n' | grep -v ' d .* 4096$' | sort; find . -type d -printf '%p %m %T@\n' | sort; find . -type f ! -path './.git/objects/*' -exec sha256sum {} + | sort -k2`

const gitListing = "; git status --porcelain 2>&1; git fsck --no-dangling 2>&1"

// differing is in the index and logs of git: inodes and times.
var differing = regexp.MustCompile(`(?m)^\./\.git(/index)? .*\n?|^.* \./\.git/index\n?`)

// withoutTimes leaves what is the same in two runs of a sequence.
func withoutTimes(t *testing.T, b *bench) string {
	return differing.ReplaceAllString(b.run(nil, `find . -path ./.git/objects -prune -o -printf '%p %y %m %l\n' | sort; find . -type f ! -path './.git/objects/*' -exec sha256sum {} + | sort -k2; git status --porcelain; git log --oneline --all | sort; git fsck --no-dangling`), "")
}

// TestRandomSequences compares three fates of the same commands: kept in one
// tree, applied to a second one, discarded from it. CHANGES_SEQUENCES says how
// many sequences are tried.
func TestRandomSequences(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("CHANGES_SEQUENCES"))
	if n == 0 {
		n = 6
	}
	kept, layered := newBench(t), newBench(t)
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 16))
		for _, b := range []*bench{kept, layered} {
			require.NoError(t, os.RemoveAll(b.root))
			require.NoError(t, os.MkdirAll(b.root, 0o755))
			b.run(nil, gitSettings+repository)
		}
		before := state(t, layered.root, true)
		discarded, err := layered.store.Create([]string{layered.root})
		require.NoError(t, err)
		set, err := layered.store.Create([]string{layered.root})
		require.NoError(t, err)
		var told []string
		for range 1 + r.IntN(4) {
			script := sequence(r)
			told = append(told, script)
			kept.run(nil, gitSettings+script)
			layered.run(discarded, gitSettings+script)
			layered.run(set, gitSettings+script)
		}
		why := fmt.Sprintf("seed %d:\n%s", seed, strings.Join(told, "\n--\n"))
		require.Equal(t, before, state(t, layered.root, true), why)
		require.NoError(t, discarded.Discard())
		require.Equal(t, before, state(t, layered.root, true), why)
		seen := layered.run(set, listing+gitListing)
		report, err := set.Apply(nil, nil)
		require.NoError(t, err, why)
		require.Zero(t, report.Left, why)
		require.Equal(t, differing.ReplaceAllString(seen, ""), differing.ReplaceAllString(layered.run(nil, listing+gitListing), ""), why)
		require.Equal(t, withoutTimes(t, kept), withoutTimes(t, layered), why)
		entries, err := filepath.Glob(filepath.Join(layered.dir, "*"))
		require.NoError(t, err)
		require.Empty(t, entries, why)
	}
}
