package gitfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

func TestPointer(t *testing.T) {
	for _, c := range []struct {
		name, content, path string
		ok                  bool
	}{
		{".git", "gitdir: ../x\n", "../x", true},
		{".git", "gitdir: ../x\r\n\r\n", "../x", true},
		{".git", "gitdir:  x/r\n", " x/r", true}, // git keeps the second blank
		{".git", "gitdir: x \n", "x ", true},
		{".git", "gitdir:x\n", "", true},
		{".git", " gitdir: x\n", "", true},
		{".git", "gitdir: \n", "", true},
		{".git", "gitdir: ../x\x00zz", "../x\x00zz", false},
		{".git", "gitdir: ../x\ny\n", "../x\ny", false},
		{"commondir", "../..\n", "../..", true},
		{"commondir", " ../..\n", " ../..", true},
		{"commondir", "..\x00x", "..\x00x", false},
		{"gitdir", "/w/.git \t\n", "/w/.git", true},
		{"gitdir", "/w/.git\v\n", "/w/.git\v", false}, // white space for C, not for git
		{"gitdir", "/w/.git\f", "/w/.git\f", false},
		{"gitdir", "", "", true},
	} {
		path, ok := gitfile.PointerTarget(c.name, []byte(c.content))
		require.Equal(t, c.path, path, "%+v", c)
		require.Equal(t, c.ok, ok, "%+v", c)
	}
}
