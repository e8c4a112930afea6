package sandboxtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// InitialTreeScript is a script that makes the tree for scripts of
// RandomScript.
const InitialTreeScript = `git init -q . && mkdir -p src/a/b doc && for i in 1 2 3 4; do seq $i 40 > src/a/f$i; seq $i 9 > doc/g$i; done
ln -s ../doc src/doc; ln -s nowhere dangling; chmod 755 src/a/f1; head -c 300000 /dev/zero | tr '\0' x > large; chmod 700 doc
git add -A; git commit -qm first`

// GitSettings must precede each script. They make git create the same commits
// on every run. Git compares sizes and modification times of files only: an
// overlay gives a file another inode number when it copies it, and git reset
// --hard writes a file again whose inode number or change time (in seconds)
// differs from the index, with mode 644 for 444.
const GitSettings = `export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.checkStat GIT_CONFIG_VALUE_0=minimal GIT_CONFIG_KEY_1=core.trustctime GIT_CONFIG_VALUE_1=false
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000' GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
umask 022
`

// Seeds returns consecutive seeds for a random test. Their number is the value of the
// environment variable. Without it, those of fallback seeds are returned that are in the
// sample, at least one. The first seed is the value of variable + "_FROM", or else 0.
func Seeds(t testing.TB, variable string, fallback int) (seeds []uint64) {
	t.Helper()
	number := func(name string, fallback int) int {
		text := os.Getenv(name)
		if text == "" {
			return fallback
		}
		n, err := strconv.Atoi(text)
		require.NoError(t, err, name)
		return n
	}
	from := number(variable+"_FROM", 0)
	for n := range number(variable, fallback) {
		if os.Getenv(variable) != "" || InSample(t.Name()+strconv.Itoa(n)) {
			seeds = append(seeds, uint64(from+n))
		}
	}
	if seeds == nil {
		seeds = []uint64{uint64(from)}
	}
	return seeds
}

// RandomScript returns a script of one to six random steps for the tree of
// InitialTreeScript. A step that is not possible in the current tree changes
// nothing.
func RandomScript(r *rand.Rand) string {
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
