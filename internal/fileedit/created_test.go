package fileedit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// Undo also removes a file that was created by splicing changes into no
// content.
func TestUndoOfAFileMadeBySplicing(t *testing.T) {
	for _, content := range []string{"one\n", ""} {
		f := newFixture(t)
		var changes []textdiff.Change
		if content != "" {
			changes = append(changes, textdiff.Change{New: content})
		}
		require.True(t, f.splice("new.txt", changes...).Created)
		require.Equal(t, content, f.content("new.txt"))
		done, err := f.Undo(context.Background(), f.fs, "new.txt", fileedit.Options{})
		require.NoError(t, err)
		require.True(t, done.Removed)
		require.NoFileExists(t, f.file("new.txt"))
	}
}

// The number of a line far into a large file is known without counting all
// lines before it.
func TestKnownFarIntoALargeFile(t *testing.T) {
	f := newFixture(t)
	f.put("large.txt", strings.Repeat("a line\n", 200_000))
	const at = 150_000 * len("a line\n")
	done := f.splice("large.txt", textdiff.Change{Start: at, End: at + len("a line"), New: "another\nand one"}, textdiff.Change{Start: at + 70, End: at + 71, New: "A"})
	seen, ok := f.Store.Seen(done.Before.Path)
	require.True(t, ok)
	require.Equal(t, [][2]int64{{150_001, 150_002}, {150_012, 150_012}}, spans(seen.Ranges))
}

func spans(ranges []state.Range) (all [][2]int64) {
	for _, r := range ranges {
		all = append(all, [2]int64{r.First, r.Last})
	}
	return all
}
