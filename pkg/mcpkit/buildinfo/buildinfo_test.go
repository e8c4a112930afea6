package buildinfo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A release has the version and the revision that the linker was given.
func TestVersionOfTheLinker(t *testing.T) {
	was, wasRevision := version, revision
	t.Cleanup(func() { version, revision = was, wasRevision })
	version, revision = "", "0123456789abcdef"
	require.NotEqual(t, "0123456789abcdef", Of("mcp-say").Revision, "a revision alone is no release")
	version = "v1.2.3"
	require.Equal(t, "v1.2.3", Version())
	require.Contains(t, Of("mcp-say").String(), "mcp-say v1.2.3 (revision 0123456789ab, go")
}
