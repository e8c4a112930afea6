package splice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/textdiff"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// Raw is what the text's changes are in the file's bytes.
func TestRawChanges(t *testing.T) {
	f, err := splice.Open([]byte("\xff\xfeh\x00\xe9\x00l\x00\n\x00")) // UTF-16
	require.NoError(t, err)
	at := len("h")
	result, err := f.Apply([]textdiff.Change{{Start: at, End: at + len("é"), New: "e"}})
	require.NoError(t, err)
	require.Equal(t, []textdiff.Change{{Start: 4, End: 6, New: "e\x00"}}, result.Raw())
}
