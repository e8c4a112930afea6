package match_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// Edits of adjacent places: text inserted at the end of one and at the
// beginning of the other is in the order of the places, whatever the order of
// the edits. It was refused as an internal error, or put in the order of the
// edits.
func TestPlacesThatTouch(t *testing.T) {
	for _, c := range []struct {
		text, want string
		edits      []match.Edit
	}{
		{"x ab y", "x aMZb y", []match.Edit{{Old: "b", New: "Zb"}, {Old: "a", New: "aM"}}},
		{"x ab y", "x aMZb y", []match.Edit{{Old: "a", New: "aM"}, {Old: "b", New: "Zb"}}},
		{"one\ntwo\nthree\n", "one\nmore\nnew\nthree\n", []match.Edit{{Old: "two\n", New: "new\n"}, {Old: "one\n", New: "one\nmore\n"}}},
		{"0\n0\na\n0\n", "0\nm\n0\nm\nb\n0\nm\n", []match.Edit{{Old: "a\n", New: "b\n"}, {Old: "0\n", New: "0\nm\n", All: true}}},
	} {
		f, err := splice.Open(t.Context(), []byte(c.text))
		require.NoError(t, err)
		plan, err := match.Find(t.Context(), f, c.edits, match.Options{})
		require.NoError(t, err)
		result, err := f.Apply(t.Context(), plan.Changes)
		require.NoError(t, err, "%q", c.text)
		require.Equal(t, c.want, string(result.Bytes()))
	}
}
