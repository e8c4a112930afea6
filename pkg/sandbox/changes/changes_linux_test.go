package changes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const tree = `mkdir -p d/deep e; echo one > a; echo two > b; echo x > d/x; echo y > d/deep/y; echo z > e/z; ln -s a l; ln b hard; chmod 750 d; chmod 600 a`

func TestChangesStayApartUntilTheyAreApplied(t *testing.T) {
	b := newBench(t)
	b.run(nil, tree)
	before := sandboxtest.DescribeTree(t, b.Root)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	require.Equal(t, "new\n", b.run(set, `echo new > n; echo more >> a; rm -r d; mkdir d; echo w > d/w; mv e f; chmod 700 b; rm l; ln -s b l; cat n`))
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
	require.Equal(t, "new\nw\n", b.run(set, `cat n d/w; touch f/z; mkdir -p p/q; echo r > p/q/r`), "the next command sees the changes")
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
	list, err := set.Changes()
	require.NoError(t, err)
	require.Equal(t, "modified a, modified b, modified d, deleted d/deep, created d/w, deleted d/x, deleted e, created f/z, modified l, created n, created p/q/r", summary(list))

	report, err := set.Apply(nil, nil)
	require.NoError(t, err)
	require.Zero(t, report.Remaining)
	require.Equal(t, "new\none\nmore\nw\nz\nr\n", b.run(nil, `cat n a d/w f/z p/q/r; ls e d/x 2>/dev/null`))
	require.NoDirExists(t, filepath.Join(b.dir, set.ID()))
	_, err = b.store.Open(set.ID())
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
}

func TestDiscard(t *testing.T) {
	b := newBench(t)
	b.run(nil, tree)
	before := sandboxtest.DescribeTree(t, b.Root)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `rm -rf -- *; mkdir -m 0 closed; echo x > y; chmod 0 y`)
	require.NoError(t, set.Discard())
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
	entries, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestSomeFilesAreApplied(t *testing.T) {
	b := newBench(t)
	b.run(nil, tree)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `echo more >> a; echo more >> b; mkdir -p p/q; echo r > p/q/r; echo s > p/s; rm d/x`)
	report, err := set.Apply([]string{"a", "p/q", filepath.Join(b.Root, "d"), "d/x"}, nil) // the last two overlap
	require.NoError(t, err)
	require.NotZero(t, report.Remaining)
	require.Equal(t, "one\nmore\ntwo\nr\n", b.run(nil, `cat a b p/q/r; ls p/s d/x 2>/dev/null`))
	list, err := set.Changes()
	require.NoError(t, err)
	require.Equal(t, "modified b, created p/s", summary(list))
	_, err = set.Apply([]string{"nothing"}, nil)
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	require.Equal(t, "two\nmore\ns\n", b.run(set, `cat b p/s; echo changed >> a`), "the rest is still seen, and a layer never writes into the root")
	require.Equal(t, "one\nmore\n", b.run(nil, `cat a`))
	_, err = set.Apply(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "one\nmore\nchanged\ntwo\nmore\ns\n", b.run(nil, `cat a b p/s`))
}

// A file, a symbolic link and a full directory are replaced by an empty directory.
func TestReplacedByAnEmptyDirectory(t *testing.T) {
	b := newBench(t)
	b.run(nil, `echo f > f; ln -s f l; mkdir d; echo x > d/x; echo g > g`)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `rm -r f l d g; mkdir f; mkdir -m 2755 l; mkdir -m 750 d; mkdir -p g/h; touch -d @1700000000 f l d g/h g .`)
	report, err := set.Apply(nil, nil)
	require.NoError(t, err)
	require.Zero(t, report.Remaining)
	require.NoDirExists(t, filepath.Join(b.dir, set.ID()))
	for name, want := range map[string]os.FileMode{"f": 0o755, "l": 0o755 | os.ModeSetgid, "d": 0o750, "g": 0o755, "g/h": 0o755} {
		info, err := os.Lstat(filepath.Join(b.Root, name))
		require.NoError(t, err)
		require.Equal(t, want|os.ModeDir, info.Mode(), name)
		require.EqualValues(t, 1_700_000_000, info.ModTime().Unix(), name)
	}
}

func TestConflicts(t *testing.T) {
	for name, theirs := range map[string]string{
		"changed":                  `echo theirs >> a`,
		"same size":                `echo 0ne > a`,
		"deleted":                  `rm a`,
		"created":                  `echo theirs > n`,
		"in a deleted one":         `echo theirs > d/theirs`,
		"changed in a deleted one": `echo theirs >> d/deep/y`,
		"another type":             `rm a; mkdir a`,
		"mode":                     `chmod 644 a`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.run(nil, tree)
			set, err := b.store.Create([]string{b.Root})
			require.NoError(t, err)
			b.run(set, `echo ours >> a; echo ours > n; rm -r d`)
			b.run(nil, theirs)
			before := sandboxtest.DescribeTree(t, b.Root)
			report, err := set.Apply(nil, nil)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), err)
			require.Len(t, report.Refused, 1)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root), "nothing was applied")
		})
	}
}

func TestNoConflictWhereOthersDidTheSame(t *testing.T) {
	b := newBench(t)
	b.run(nil, tree)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `echo ours >> a; echo ours > n; rm -r d`)
	b.run(nil, `echo ours >> a; touch b; echo ours > n; rm -r d; echo theirs > other`)
	_, err = set.Apply(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "one\nours\nours\ntheirs\n", b.run(nil, `cat a n other`))
}

func TestRefusedPathsStay(t *testing.T) {
	b := newBench(t)
	b.run(nil, tree)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `mkdir .vscode; echo {} > .vscode/tasks.json; echo ours > n`)
	report, err := set.Apply(nil, func(abs string) string {
		if filepath.Base(abs) == ".vscode" {
			return "is protected"
		}
		return ""
	})
	require.NoError(t, err)
	require.Len(t, report.Refused, 1)
	require.NotZero(t, report.Remaining)
	require.NoDirExists(t, filepath.Join(b.Root, ".vscode"))
	require.FileExists(t, filepath.Join(b.Root, "n"))
}

// The layer of a killed process is finished by the next process.
func TestAKilledProcessLosesNothing(t *testing.T) {
	b := newBench(t)
	b.run(nil, tree)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	layer, err := set.Begin("killed")
	require.NoError(t, err)
	_, err = set.Apply(nil, nil)
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "a command runs over it")
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(set.Discard()))
	require.NoError(t, os.WriteFile(filepath.Join(layer.Mounts()[0].Upper, "a"), []byte("killed\n"), 0o600))
	layer.Abandon()
	again := b.store.List([]string{b.Root})
	require.Len(t, again, 1)
	list, err := again[0].Changes()
	require.NoError(t, err)
	require.Equal(t, "modified a", summary(list))
	_, err = again[0].Apply(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "killed\n", b.run(nil, `cat a`))
}

// A plain user has no capability over the directories that overlayfs creates
// with mode 0.
func TestAsAPlainUser(t *testing.T) {
	sandboxtest.AsPlainUser(t, "TestChangesStayApartUntilTheyAreApplied", "TestDiscard", "TestSomeFilesAreApplied", "TestConflicts", "TestClosedOpaqueDirectory", "TestNamesThatAreNotUTF8", "TestRandomSequences")
}

// A set whose record cannot be written, as on a full disk, can be discarded.
func TestDiscardWithoutRoom(t *testing.T) {
	b := newBench(t)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	layer, err := set.Begin("killed")
	require.NoError(t, err)
	layer.Abandon()
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, set.ID(), "set.json.new"), 0o700))
	_, err = set.Changes()
	require.Error(t, err)
	require.NoError(t, set.Discard())
	require.NoDirExists(t, filepath.Join(b.dir, set.ID()))
}

// A server may have no writable root.
func TestNoRoots(t *testing.T) {
	set, err := changes.New(t.TempDir()).Create(nil)
	require.NoError(t, err)
	layer, err := set.Begin("true")
	require.NoError(t, err)
	require.Empty(t, layer.Mounts())
	_, err = layer.End()
	require.NoError(t, err)
	list, err := set.Changes()
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, set.Discard())
}

// isOpaque reads an attribute of the directory. A plain user can only read it
// if the mode allows the user to read the directory.
func TestClosedOpaqueDirectory(t *testing.T) {
	b := newBench(t)
	b.run(nil, tree)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `rm -r d e; mkdir d; echo n > d/n; chmod 444 d/n; chmod 311 d; mkdir e; chmod 555 e`)
	b.run(set, `chmod 700 e; echo m > e/m; chmod 500 e`)
	_, err = set.Apply(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "d-wx--x--x\ndr-x------\nd/n\ne/m\n", b.run(nil, `stat -c %A d e; chmod 700 d; ls d/* e/*`))
}

// The end of each command returns the entries of all commands so far.
func TestEntriesAfterEachCommand(t *testing.T) {
	b := newBench(t)
	b.alone = true
	b.run(nil, tree)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	for _, script := range []string{
		`true`, `echo more >> a`, `rm -r d; mkdir d`, `mkdir d/deep`, `echo n > d/deep/n`, `rm -r d/deep; echo f > d/deep`, `rm d/deep; mkdir d/deep; echo y > d/deep/y`,
		`rm -r d; echo f > d`, `rm d; mkdir d; echo x > d/x`, `echo new > n; mkdir -p p/q; echo r > p/q/r`, `rm -r p n`, `mkdir p`, `mv e f; mkdir e`, `rm -r f`,
		`chmod 711 .`, `ln -sfn nowhere l`, `rm -rf -- *`, `mkdir -p d/deep`, `echo two > b`, `chmod 755 .`,
	} {
		b.run(set, script)
	}
}

// Names are bytes, also in the record of a set.
func TestNamesThatAreNotUTF8(t *testing.T) {
	b := newBench(t)
	b.Root += "\xe4:,\\"
	require.NoError(t, os.Mkdir(b.Root, 0o755))
	b.ResetRules()
	const make = `a=$'\xff' b=$'\xfe' d=$'\xc3' new=$'n\xff'; `
	b.run(nil, make+`echo a > $a; echo b > $b; mkdir -p $d/$d gone/$d; echo d > $d/$d/$a; echo g > gone/$d/$a`)
	before := sandboxtest.DescribeTree(t, b.Root)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, make+`echo more >> $a; rm $b; mkdir $new; echo new > $new/$new; chmod 700 $d/$d; echo more >> $d/$d/$a; rm -r gone; mkdir gone; echo h > gone/h`)
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
	roots, err := set.Roots()
	require.NoError(t, err)
	require.Equal(t, []string{b.Root}, roots)
	_, err = set.Apply(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "a\nmore\nnew\nd\nmore\nh\n", b.run(nil, make+`cat $a $new/$new $d/$d/$a gone/h; ls $b gone/$d 2>/dev/null`))
}
