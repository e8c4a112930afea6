package editdistance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/editdistance"
)

func TestBetween(t *testing.T) {
	for _, tc := range []struct {
		a, b  string
		limit int
		want  int
	}{
		{"", "", 3, 0}, {"a", "", 3, 1}, {"", "ab", 3, 2}, {"abc", "abc", 1, 0}, {"abc", "abd", 1, 1}, {"abc", "acb", 1, 1},
		{"abcd", "badc", 3, 2}, {"kitten", "sitting", 3, 3}, {"kitten", "sitting", 2, 3}, {"abc", "xyz", 2, 3},
		{"abcdef", "bcdef", 1, 1}, {"abcdef", "abcdefg", 1, 1}, {"\u00e9t\u00e9", "ete", 3, 2}, {"abcdefgh", "ghabcdef", 3, 4},
	} {
		require.Equal(t, tc.want, editdistance.Between(tc.a, tc.b, tc.limit), "%q %q", tc.a, tc.b)
		require.Equal(t, tc.want, editdistance.Between(tc.b, tc.a, tc.limit), "%q %q", tc.b, tc.a)
	}
}
