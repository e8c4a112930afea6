package gitfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

func TestReusePaths(t *testing.T) {
	sha1, sha256 := strings.Repeat("0a", 20), strings.Repeat("1b", 32)
	for _, c := range []struct {
		file  string
		paths []string
		ok    bool
	}{
		{"", nil, true},
		{sha1 + "\ta\x00" + sha1 + ".1\td/b\tc\x00", []string{"a", "d/b\tc"}, true},
		{sha256 + ".12\t../x\x00" + sha1 + "\tlast", []string{"../x", "last"}, true},
		{sha1 + ".-1\ta\x00", nil, false},
		{sha1 + ".\ta\x00", nil, false},
		{sha1 + ".\t1\ta\x00", nil, false},
		{sha1 + ". 1\ta\x00", nil, false},
		{sha1 + "\t\x00", nil, false},
		{strings.ToUpper(sha1) + "\ta\x00", nil, false},
		{sha1 + "\ta\x00x", []string{"a"}, false},
	} {
		paths, ok := gitfile.RererePaths([]byte(c.file))
		require.Equal(t, c.ok, ok, "%q", c.file)
		require.Equal(t, c.paths, paths, "%q", c.file)
	}
	for path, escapes := range map[string]bool{"a/b": false, "../a": true, "a/../../b": true, "/a": true, ".git/config": true, "s/.GIT/hooks/x": true, ".github/x": false} {
		require.Equal(t, escapes, gitfile.EscapesWorkTree(path), path)
	}
}
