package changes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Another program changes a file after Apply has looked for conflicts, and before it
// applies that file: Apply stops and keeps the other program's version.
func TestFileIsChangedDuringAnApply(t *testing.T) {
	for name, script := range map[string]string{
		"modified": `echo ours > d/x`,
		"deleted":  `rm d/x`,
		"created":  `echo ours > d/new`,
		"link":     `ln -sf ours d/x`,
		"replaced": `rm d/x; mkdir d/x; echo ours > d/x/y`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.RunOutside(`mkdir d; echo a > a; echo x > d/x; echo y > d/y`)
			set, err := b.store.Create([]string{b.Root})
			require.NoError(t, err)
			b.run(set, "echo more >> a; "+script)
			file := filepath.Join(b.Root, "d/x")
			if name == "created" {
				file = filepath.Join(b.Root, "d/new")
			}
			changed := false
			report, err := set.Apply(nil, func(string) string {
				if !changed { // after the check for conflicts
					changed = true
					require.NoError(t, os.WriteFile(file, []byte("theirs, and longer\n"), 0o644))
				}
				return ""
			})
			require.True(t, changed)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
			require.Contains(t, err.Error(), file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "theirs, and longer\n", string(text))
			require.Equal(t, "modified a", summary(report.Applied))
			require.Equal(t, "a\nmore\n", b.run(nil, "cat a"))

			_, err = set.Apply(nil, nil)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "the next call finds it, too: %v", err)
			require.NoError(t, set.Discard())
		})
	}
}

// The same with a file that another program creates in a directory that is deleted.
func TestFileIsCreatedInADeletedDirectory(t *testing.T) {
	b := newBench(t)
	b.RunOutside(`mkdir -p d/sub; echo x > d/sub/x`)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, "rm -r d")
	file := filepath.Join(b.Root, "d/sub/new")
	_, err = set.Apply(nil, func(string) string {
		require.NoError(t, os.WriteFile(file, []byte("theirs"), 0o644))
		return ""
	})
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
	require.FileExists(t, file)
}
