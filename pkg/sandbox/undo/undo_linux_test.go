package undo_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/undo"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func (b *bench) write(name, text string) {
	b.T.Helper()
	path := filepath.Join(b.Root, name)
	require.NoError(b.T, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(b.T, os.WriteFile(path, []byte(text), 0o644))
}

// steps holds commands by name. Each is undone separately.
var steps = map[string]string{
	"overwrite":            "echo new > a",
	"append":               "echo more >> a",
	"in place":             "sed -i s/a/b/ a",
	"delete":               "rm a",
	"delete a tree":        "rm -rf d",
	"rename":               "mv a b",
	"rename over":          "mv a d/x",
	"rename a directory":   "mv d e; echo more >> e/x; rm e/y",
	"rename and replace":   "mv d e; mkdir d; echo other > d/x",
	"into a new directory": "mkdir n; mv a n/; echo more >> n/a; mv n m; rm m/a",
	"link, then write":     "mkdir n; ln a n/l; echo more >> n/l",
	"break a hard link":    "rm h1; echo x > h2",
	"through a link":       "echo more >> link",
	"through a dangling":   "echo more > dangling",
	"exchange":             "mv --exchange a d/x 2>/dev/null || true; echo more >> a",
	"modes":                "chmod 600 a; chmod 700 d; touch -d @1 d/y",
	"failed removal":       "chmod 555 d; rm -f d/x; echo more >> d/x; chmod 755 d",
	"failed rmdir":         "chmod 555 d; rmdir d/sub; echo x > d/sub/n; chmod 755 d",
	"remove, make again":   "rm -rf d; mkdir d; echo x > d/x; mv d e; mkdir d",
	"fifo and socket":      "mkfifo f; rm -f f; mkfifo d/f; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'",
	"in place, same times": "printf b | dd of=a conv=notrunc status=none; touch -d @1700000000 a",
	"truncate":             "truncate -s 1 a; : > d/x",
	"from a directory":     "cd d; echo 1 > ../a; rm ./x; cd ..; echo 2 > ./d/../h1",
	"by a descriptor":      "exec 3< d; echo 1 > /proc/self/fd/3/x; chmod 600 /proc/self/fd/3/y",
	"temporary directory":  "cp a $TMPDIR/; mv $TMPDIR/a d/new; mv d/x $TMPDIR/",
	"exec truncates":       "exec > a; echo new",
	"move through":         "mkdir n; mv d n/d; mv n/d/x n/x; mkdir n/d2; rm -r n/d",
	"unreadable":           "rm none; echo x > secret",

	// An old file or directory in a directory that the command made.
	"new: moved in, removed":            "mkdir q; mv a q/; rm -rf q",
	"new: moved in, removed as q2":      "mkdir q; mv a q/; mv q q2; rm -r q2",
	"new: a directory moved in":         "mkdir -p q/r; mv d q/r/; rm -rf q",
	"new: moved in, truncated":          "mkdir q; mv a q/; : > q/a; rm -r q",
	"new: moved in, truncated, out":     "mkdir q; mv a q/; : > q/a; mv q/a .; rm -r q",
	"new: moved in, out as b":           "mkdir q; mv -f a q/; mv q/a b; rm -r q",
	"new: moved in, made again":         "mkdir q; mv a q/; echo x > a; rm -r q; echo file > q",
	"new: a symbolic link":              "mkdir q; mv link q/l; mv q/l q/l2; rm -r q",
	"new: emptied d":                    "mkdir q; mv d/x q/; rm -r d q",
	"new: a repository":                 "git init -q g; mv a g/; rm -rf g",
	"new: instead of an old file":       "rm a; mkdir a; mv h1 a/; rm -r a",
	"new: several times":                "for i in 1 2 3; do mkdir q; mv a q/; mv q/a .; rmdir q; done; mkdir q; mv a q; rm -r q",
	"new: linked in, written, removed":  "mkdir q; ln a q/l; echo more >> q/l; rm -r q",
	"new: linked over, written":         "rm h1; ln a h1; echo more >> h1; rm h1",
	"new: replaced by a directory":      "mkdir q r; mv a q/; rm q/a; mv -T r q; rm -r q",
	"new: replaced by a link":           "mkdir q r; mv q r/q; mv r/q x; rm -r r; ln -s d r; mv x r; rm -r r/q; mkdir s; mv a s; rm -r s; ln -s d s",
	"new: closed and removed":           "mkdir q; mv a q/; mv q/a .; chmod 0 q; rmdir q",
	"new: exchanged":                    "echo new > n; mv --exchange n a 2>/dev/null || mv a n; rm -f a n; echo x > y",
	"old: an emptied directory":         "rm d/x; mkdir e; mv d/y e/; mv d/sub e/; mv -T e d; rm -r d",
	"old: moved to a removed name":      "rm -r d; mkdir e; mv a e/x; mv e d; rm d/x",
	"old: an old directory moved there": "mkdir -p n/m; mv d n/m/d; rm -r n/m/d/x; mv n/m d; rm d/d/y",
	"moved out of the roots":            "mv a $TMPDIR/b; echo more >> $TMPDIR/b; rm $TMPDIR/b",
	"a directory moved out":             "mv d $TMPDIR/d; echo more >> $TMPDIR/d/x; rm -r $TMPDIR/d",
	"moved out and in":                  "mv d $TMPDIR/d; mv $TMPDIR/d e; echo more >> e/x; rm -r e",
	"linked out, written":               "ln a $TMPDIR/b 2>/dev/null; echo more >> $TMPDIR/b; rm $TMPDIR/b a",
	"removed, written by descriptor":    "exec 3< a; rm a; echo more >> /proc/self/fd/3",
}

func TestSteps(t *testing.T) {
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		b := newBench(t, level)
		for name, script := range steps {
			t.Run(string(level)+" "+name, func(t *testing.T) {
				b.T = t
				b.RemoveFiles()
				b.RunOutside("echo a > a; mkdir -p d/sub; echo x > d/x; echo y > d/y; echo h > h1; ln h1 h2; ln -s a link; ln -s nowhere dangling; echo n > none; chmod 200 none; touch -d @1700000000 a d d/x .")
				before := sandboxtest.DescribeTree(t, b.Root)
				id, out := b.run(script)
				require.NotEmpty(t, id, out)
				require.NotEqual(t, before, sandboxtest.DescribeTree(t, b.Root), "the command changed nothing: %s", out)
				report := b.undo(id)
				require.Empty(t, report.NotHeld)
				require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root), out)
				_, err := b.store.Open(id)
				require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), "the record is gone")
			})
		}
	}
}

// A file is in a directory that nobody may enter any more.
func TestClosedDirectory(t *testing.T) {
	b := newBench(t, proc.L2)
	b.RunOutside("echo a > a; mkdir d; echo x > d/x")
	before := sandboxtest.DescribeTree(t, b.Root)
	id, _ := b.run("mkdir q; mv a q/; chmod 0 q; chmod 0 d")
	b.undo(id)
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
}

// A command that changes nothing in the roots has no record.
func TestNoRecord(t *testing.T) {
	b := newBench(t, proc.L2)
	b.write("a", "a\n")
	id, _ := b.run("cat a; echo x > $TMPDIR/x; cat < a > /dev/null; [ -w a ]; mkdir -p . ; rm -f nothing")
	require.Empty(t, id)
	left, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLargeFiles(t *testing.T) {
	b := newBench(t, proc.L2)
	b.write("small", "small")
	for _, name := range []string{"written", "d/removed"} {
		b.write(name, "")
		require.NoError(t, os.Truncate(filepath.Join(b.Root, name), supervise.UndoFileBytes+1))
	}
	b.write("opened", "")
	require.NoError(t, os.Truncate(filepath.Join(b.Root, "opened"), supervise.UndoFileBytes+1))
	id, _ := b.run("echo more >> written; rm -r d; rm small; : >> opened")
	record, err := b.store.Open(id)
	require.NoError(t, err)
	unheld, stopped := record.Unheld()
	require.Equal(t, []undo.Unheld{{Path: filepath.Join(b.Root, "written"), Size: supervise.UndoFileBytes + 1}}, unheld)
	require.Empty(t, stopped)
	report := b.undo(id)
	require.Equal(t, []string{filepath.Join(b.Root, "written")}, report.NotHeld, "a file that was written is copied up to a bound")
	require.FileExists(t, filepath.Join(b.Root, "small"))
	info, err := os.Stat(filepath.Join(b.Root, "d/removed"))
	require.NoError(t, err, "a removed file is linked")
	require.EqualValues(t, supervise.UndoFileBytes+1, info.Size())
}

// An undo that was interrupted reports, when it is repeated, also what it did and
// found before.
func TestInterruptedUndo(t *testing.T) {
	b := newBench(t, proc.L2)
	b.write("gone", "")
	b.write("small", "small")
	b.write("large", "")
	require.NoError(t, os.Truncate(filepath.Join(b.Root, "large"), supervise.UndoFileBytes+1))
	id, _ := b.run("rm gone; mv small moved; rm moved; echo more >> large")
	links, err := filepath.Glob(filepath.Join(b.dir, id, "l1"))
	require.NoError(t, err)
	require.Len(t, links, 1)
	aside := filepath.Join(b.dir, "aside")
	require.NoError(t, os.Rename(links[0], aside))
	record, err := b.store.Open(id)
	require.NoError(t, err)
	_, err = record.Undo(nil)
	require.ErrorContains(t, err, "undo stopped at")
	require.NoError(t, os.Rename(aside, links[0]))
	report := b.undo(id)
	require.Equal(t, []string{filepath.Join(b.Root, "large")}, report.NotHeld)
	require.Equal(t, 2, report.Restored)
	require.Equal(t, 1, report.Moved)
}

// An undo that was interrupted in its first step, when a file was only half written, can
// be repeated: the half of the file is not taken for a change by others.
func TestUndoInterruptedInItsFirstStep(t *testing.T) {
	b := newBench(t, proc.L2)
	b.write("a", "before")
	before := sandboxtest.DescribeTree(t, b.Root)
	id, _ := b.run("echo more >> a")
	record, err := b.store.Open(id)
	require.NoError(t, err)
	data := filepath.Join(b.dir, id, "data")
	require.NoError(t, os.Rename(data, data+".aside"))
	require.NoError(t, os.Mkdir(data, 0o700)) // reading it fails
	_, err = record.Undo(nil)
	require.ErrorContains(t, err, "undo stopped at")
	require.NoError(t, os.Remove(data))
	require.NoError(t, os.Rename(data+".aside", data))
	b.undo(id)
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
}

func TestConflict(t *testing.T) {
	for name, c := range map[string]struct{ others, named string }{
		"written":           {"echo theirs > a", "a"},
		"created in place":  {"echo theirs > gone", "gone"},
		"in a new one":      {"echo theirs > new/x/theirs", "new/x"},
		"removed":           {"rm new/x/y", "new/x"},
		"mode":              {"chmod 600 a", "a"},
		"the link's target": {"ln -sfn theirs link", "link"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, proc.L2)
			b.RunOutside("echo a > a; echo gone > gone; ln -s a link; echo other > other")
			id, _ := b.run("echo ours >> a; rm gone; mkdir -p new/x; echo y > new/x/y; ln -sfn ours link")
			time.Sleep(20 * time.Millisecond) // the kernel's clock for files has steps of up to 10 ms
			b.RunOutside(c.others)
			after := sandboxtest.DescribeTree(t, b.Root)
			record, err := b.store.Open(id)
			require.NoError(t, err)
			_, err = record.Undo(nil)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), err)
			require.Contains(t, err.Error(), filepath.Join(b.Root, c.named))
			require.Equal(t, after, sandboxtest.DescribeTree(t, b.Root), "nothing is done")
		})
	}
}

// A file that others touched, or wrote with the same content, is no conflict.
func TestSameContentIsNoConflict(t *testing.T) {
	for name, others := range map[string]string{
		"touched":   "touch a new",
		"written":   "cp a copy; cat copy > a; rm copy",
		"replaced":  "cp -p new copy; mv copy new",
		"time back": "touch -d @1600000000 a",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, proc.L2)
			b.RunOutside("echo a > a; chmod 644 a; touch -d @1700000000 a .")
			before := sandboxtest.DescribeTree(t, b.Root)
			id, _ := b.run("echo ours >> a; echo new > new")
			time.Sleep(20 * time.Millisecond) // the kernel's clock for files has steps of up to 10 ms
			b.RunOutside(others)
			b.undo(id)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
		})
	}
}

// Changes of other files by others, even in the same directories, are no
// conflict and are kept.
func TestOthersChangesStay(t *testing.T) {
	b := newBench(t, proc.L2)
	b.RunOutside("mkdir d; echo a > d/a; echo b > d/b")
	id, _ := b.run("rm d/a; echo c > d/c; mv d e")
	b.RunOutside("echo theirs > e/theirs; echo theirs > e/b")
	b.undo(id)
	for name, want := range map[string]string{"d/a": "a\n", "d/b": "theirs\n", "d/theirs": "theirs\n"} {
		text, err := os.ReadFile(filepath.Join(b.Root, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoFileExists(t, filepath.Join(b.Root, "d/c"))
}

// Each of several concurrent commands has its own record, and they can be
// undone in any order.
func TestParallel(t *testing.T) {
	b := newBench(t, proc.L2)
	names := strings.Fields("one two three four")
	for _, name := range names {
		b.RunOutside("mkdir " + name + "; for i in {1..30}; do echo $i > " + name + "/f$i; done")
	}
	before := sandboxtest.DescribeTree(t, b.Root)
	ids := make([]string, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			ids[i], _ = b.run("cd " + name + "; for i in {1..30}; do echo more >> f$i; mv f$i g$i & done; wait; mkdir d; mv g* d; rm d/g1*")
		})
	}
	all.Wait()
	for i := range ids {
		b.undo(ids[(i*3)%len(ids)])
	}
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
}

// A running command is not undone.
func TestStillRuns(t *testing.T) {
	b := newBench(t, proc.L2)
	b.write("a", "a\n")
	p, err := b.Runner.Start(t.Context(), proc.Command{Script: "echo b > a; echo c > c; echo ready; read line", Dir: b.Root, Rules: b.Rules, KeepStdin: true})
	require.NoError(t, err)
	for p.Output().Size() == 0 {
		time.Sleep(time.Millisecond)
	}
	record, err := b.store.Open(p.UndoID())
	require.NoError(t, err)
	_, err = record.Undo(nil)
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err))
	require.Contains(t, err.Error(), "still runs")
	p.CloseStdin()
	p.Wait()
	p.Output().Close()
	b.undo(p.UndoID())
	require.NoFileExists(t, filepath.Join(b.Root, "c"))
}

// Paths that must not be written stay unchanged.
func TestRefused(t *testing.T) {
	b := newBench(t, proc.L2)
	b.RunOutside("echo a > a; echo b > b")
	id, _ := b.run("echo more >> a; echo more >> b; mkdir c; mv b c/b")
	record, err := b.store.Open(id)
	require.NoError(t, err)
	_, err = record.Undo(func(abs string) string {
		if abs == filepath.Join(b.Root, "b") {
			return "protected"
		}
		return ""
	})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(b.Root, "b"))
	text, err := os.ReadFile(filepath.Join(b.Root, "a"))
	require.NoError(t, err)
	require.Equal(t, "a\n", string(text))
}

// The supervisor checks system calls with an undo record as without one.
func TestStillConfined(t *testing.T) {
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			b := newBench(t, level)
			outer := filepath.Join(filepath.Dir(b.Root), "socket")
			listener, err := net.Listen("unix", outer)
			require.NoError(t, err)
			defer listener.Close() //nolint:errcheck // only listened
			b.RunOutside("echo a > a; mkdir d")
			before := sandboxtest.DescribeTree(t, b.Root)
			id, out := b.run(`echo more >> a
for mode in u+s g+s; do chmod $mode a 2>/dev/null && echo "a has $mode"; done
chmod u+s d 2>/dev/null && echo "d has u+s"
python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("` + outer + `"); print("connected")' 2>/dev/null
chmod g+s d 2>/dev/null && echo "d has g+s"`)
			want := "d has g+s\n"
			if level == proc.L1 {
				want = ""
			}
			require.Equal(t, want, out)
			b.undo(id)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
		})
	}
}

func TestPrune(t *testing.T) {
	b := newBench(t, proc.L2)
	first, _ := b.run("echo a > a")
	time.Sleep(20 * time.Millisecond)
	second, _ := b.run("echo b > b")
	b.store.Prune(1<<30, time.Hour)
	require.Len(t, b.store.List([]string{b.Root}), 2)
	b.store.Prune(20<<10, time.Hour)
	list := b.store.List([]string{b.Root})
	require.Len(t, list, 1, "%s went first", first)
	require.Equal(t, second, list[0].ID)
	b.store.Prune(1<<30, 0)
	require.Empty(t, b.store.List([]string{b.Root}))
}
