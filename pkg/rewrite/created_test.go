package rewrite_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/rewrite"
	"github.com/toolroom-mcp/toolroom/pkg/textdiff"
)

// A file that changes of nothing have made is removed by undo, too.
func TestUndoOfAFileMadeBySplicing(t *testing.T) {
	for _, content := range []string{"one\n", ""} {
		f := newFixture(t)
		var changes []textdiff.Change
		if content != "" {
			changes = append(changes, textdiff.Change{New: content})
		}
		require.True(t, f.splice("new.txt", changes...).Created)
		require.Equal(t, content, f.content("new.txt"))
		done, err := f.Undo(context.Background(), f.fs, "new.txt", rewrite.Options{})
		require.NoError(t, err)
		require.True(t, done.Removed)
		require.NoFileExists(t, f.file("new.txt"))
	}
}
