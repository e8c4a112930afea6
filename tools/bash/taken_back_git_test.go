//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// The answer says how the user applies a stash that is held back, and repairs a
// removed index.
func TestTakenBackTextOfGit(t *testing.T) {
	for path, want := range map[string]string{
		"/r/.git/rebase-merge/autostash": "git stash apply",
		"/r/.git/MERGE_AUTOSTASH":        "git stash apply",
		"/r/.git/index":                  "git reset",
		"/r/.git/sharedindex.0123":       "git reset",
	} {
		require.Contains(t, revertedText(new(sandbox.FS), []string{path}, nil), want, path)
	}
	text := revertedText(new(sandbox.FS), []string{"/r/index"}, nil)
	require.False(t, strings.Contains(text, "git reset"), text)
}
