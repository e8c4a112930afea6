package splice_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// RawChanges returns the text's changes as changes of the file's bytes.
func TestRawChanges(t *testing.T) {
	f, err := splice.Open(t.Context(), []byte("\xff\xfeh\x00\xe9\x00l\x00\n\x00")) // UTF-16
	require.NoError(t, err)
	at := len("h")
	result, err := f.Apply(t.Context(), []textdiff.Change{{Start: at, End: at + len("é"), New: "e"}})
	require.NoError(t, err)
	require.Equal(t, []textdiff.Change{{Start: 4, End: 6, New: "e\x00"}}, result.RawChanges())
}

// With an index, line numbers are the same as without one.
func TestNumbersOfAScannedFile(t *testing.T) {
	for _, unit := range []string{"a line\n", "a line\r\n", "a line\r"} {
		raw := []byte("\xef\xbb\xbf" + strings.Repeat(unit, 300_000))
		index, err := textfile.Scan(context.Background(), bytes.NewReader(raw), int64(len(raw)), textfile.Options{})
		require.NoError(t, err)
		require.NotEmpty(t, index.LinesBefore)
		scanned, err := splice.OpenIndexed(t.Context(), raw, index)
		require.NoError(t, err)
		plain, err := splice.Open(t.Context(), raw)
		require.NoError(t, err)
		require.Equal(t, plain.Format, scanned.Format)
		got, want := scanned.LineNumberer(), plain.LineNumberer()
		for at := 3; at < len(raw); at += 33_331 {
			require.Equal(t, want(at), got(at), "%q at %d", unit, at)
		}
		require.Equal(t, want(len(raw)), got(len(raw)))
	}
}
