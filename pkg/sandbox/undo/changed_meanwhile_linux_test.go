package undo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Another program changes a file after Undo has looked for conflicts, and before it
// restores that file: Undo stops and names the file. The next call restores it.
func TestFileIsChangedDuringAnUndo(t *testing.T) {
	for name, script := range map[string]string{
		"written":  `echo ours >> d/x`,
		"removed":  `rm d/x`,
		"replaced": `rm d/x; echo ours > d/x`,
		"moved":    `mv d/x d/y`,
		"linked":   `rm d/x; ln -s ours d/x`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, proc.L2)
			b.RunOutside(`mkdir d; echo a > a; echo x > d/x`)
			id, _ := b.run(script + "; echo more >> a")
			record, err := b.store.Open(id)
			require.NoError(t, err)
			file := filepath.Join(b.Root, "d/x")
			_, err = record.Undo(b.inStepOf("a", func() {
				os.Remove(file) //nolint:errcheck // it may be missing
				require.NoError(t, os.WriteFile(file, []byte("theirs, and longer\n"), 0o644))
			}))
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
			require.Contains(t, err.Error(), file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "theirs, and longer\n", string(text))
			_, err = record.Undo(nil)
			require.NoError(t, err)
			for path, want := range map[string]string{"a": "a\n", "d/x": "x\n"} {
				text, err := os.ReadFile(filepath.Join(b.Root, path))
				require.NoError(t, err)
				require.Equal(t, want, string(text))
			}
		})
	}
}

// inStepOf returns a function for Undo that refuses nothing, and calls change once, in the
// step that restores the file name of the root, after the check for conflicts.
func (b *bench) inStepOf(name string, change func()) func(abs string) string {
	calls := 0
	return func(abs string) string {
		if abs == filepath.Join(b.Root, name) {
			if calls++; calls == 2 { // 1: the check for conflicts
				change()
			}
		}
		return ""
	}
}

// After Undo has stopped at a file, the next call overwrites only that file: it stops
// again at one that another program changed in the meantime. So does a call after one
// that was killed. What was undone before and changed since stays.
func TestFileIsChangedBetweenTwoUndos(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(map[bool]string{false: "stopped", true: "killed"}[killed], func(t *testing.T) {
			b := newBench(t, proc.L2)
			b.RunOutside(`for i in a b c; do echo $i > $i; done; ln b b2`)
			id, _ := b.run(`for i in c b a; do echo more >> $i; done`)
			record, err := b.store.Open(id)
			require.NoError(t, err)
			path := func(name string) string { return filepath.Join(b.Root, name) }
			write := func(name string) { require.NoError(t, os.WriteFile(path(name), []byte("theirs\n"), 0o644)) }
			calls := 0
			undo := func() {
				_, err = record.Undo(func(abs string) string {
					if abs != path("b") {
						return ""
					}
					// 1: the check for conflicts, 2: before the step that restores b, 3: in it
					if calls++; calls == 2 && !killed {
						write("b")
					} else if calls == 3 && killed {
						panic("killed")
					}
					return ""
				})
			}
			if killed {
				require.Panics(t, undo)
			} else {
				undo()
				require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
				require.Contains(t, err.Error(), path("b"))
			}
			write("a")
			write("c")
			_, err = record.Undo(nil)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
			require.Contains(t, err.Error(), path("c"))
			for name, want := range map[string]string{"a": "theirs\n", "b": "b\n", "b2": "b\n", "c": "theirs\n"} {
				text, err := os.ReadFile(path(name))
				require.NoError(t, err)
				require.Equal(t, want, string(text), name)
			}
			_, err = record.Undo(nil)
			require.NoError(t, err)
			for name, want := range map[string]string{"a": "theirs\n", "b": "b\n", "b2": "b\n", "c": "c\n"} {
				text, err := os.ReadFile(path(name))
				require.NoError(t, err)
				require.Equal(t, want, string(text), name)
			}
		})
	}
}

// Another program creates a file in a directory that the command made, after Undo has
// looked for conflicts: Undo does not remove the directory, and names the file. The next
// call removes it, unless there is one more.
func TestFileIsCreatedDuringAnUndo(t *testing.T) {
	for name, c := range map[string]struct{ script, dir string }{
		"made":              {`mkdir -p new/sub; echo x > new/sub/y`, "new/sub"},
		"made for a file":   {`rm f; mkdir f`, "f"},
		"made for a moved":  {`mv d e; mkdir d; echo x > d/y`, "d"},
		"an old one inside": {`mkdir new; mv f new/; mv d new/`, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, proc.L2)
			b.RunOutside(`mkdir d; echo d > d/x; echo f > f; echo a > a; echo old > ../old; touch -d @1700000000 ../old`)
			before := sandboxtest.DescribeTree(t, b.Root)
			id, _ := b.run(c.script + `; echo more >> a`)
			record, err := b.store.Open(id)
			require.NoError(t, err)
			first, second := filepath.Join(b.Root, c.dir, "theirs"), filepath.Join(b.Root, c.dir, "theirs too")
			_, err = record.Undo(b.inStepOf("a", func() {
				require.NoError(t, os.WriteFile(first, []byte("theirs\n"), 0o644))
			}))
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
			require.Contains(t, err.Error(), first)
			require.FileExists(t, first)
			b.RunOutside(`mv ../old '` + second + `'`)
			_, err = record.Undo(nil)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
			require.Contains(t, err.Error(), second)
			require.FileExists(t, second)
			_, err = record.Undo(nil)
			require.NoError(t, err)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
		})
	}
}
