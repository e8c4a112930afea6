package undo_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
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

// TestRandomSequences runs several commands and undoes them one by one, the last
// one first. After each undo the tree equals the tree before that command.
// UNDO_SEQUENCES says how many sequences are tried at each level.
func TestRandomSequences(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("UNDO_SEQUENCES"))
	if n == 0 {
		n = 12
	}
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			b := newBench(t, level)
			for _, seed := range []uint64{113, 386} { // a new directory gets the inode of the removed one
				b.sequence(t, seed, func(state string) string { return state })
			}
			for seed := range uint64(n) {
				b.sequence(t, seed, func(state string) string { return state })
			}
		})
	}
}

// sameFile is the note of state about hard links.
var sameFile = regexp.MustCompile(` same as .*`)

// With the records on another file system, removed files are copied instead of
// linked: then hard links come back as files of their own.
func TestRandomSequencesCopied(t *testing.T) {
	const memory = "/dev/shm"
	at := mcpkittest.OuterDir(t, "")
	var one, other syscall.Stat_t
	if syscall.Stat(memory, &one) != nil || syscall.Stat(at, &other) != nil || one.Dev == other.Dev {
		t.Skip("there is no second file system")
	}
	dir, err := os.MkdirTemp(memory, "undo-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := benchIn(t, proc.L2, at, filepath.Join(dir, "state", "commands"))
	for seed := range uint64(6) {
		b.sequence(t, 1000+seed, func(state string) string { return sameFile.ReplaceAllString(state, "") })
	}
}

func (b *bench) sequence(t *testing.T, seed uint64, compared func(string) string) {
	r := rand.New(rand.NewPCG(seed, 16))
	b.fresh()
	b.run(gitSettings + repository)
	var ids, before, told []string
	for range 1 + r.IntN(4) {
		script := sequence(r)
		told = append(told, script)
		before = append(before, state(t, b.root))
		id, _ := b.run(gitSettings + script)
		ids = append(ids, id)
	}
	why := fmt.Sprintf("seed %d:\n%s", seed, strings.Join(told, "\n--\n"))
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] != "" {
			record, err := b.store.Open(ids[i])
			require.NoError(t, err, why)
			report, err := record.Undo(nil)
			require.NoError(t, err, why)
			require.Empty(t, report.NotHeld, why)
			require.False(t, report.Unchecked, why)
		}
		require.Equal(t, compared(before[i]), compared(state(t, b.root)), "command %d, %s", i, why)
	}
}
