package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilePath(t *testing.T) {
	for _, c := range []struct {
		uri     string
		windows bool
		want    string // "": refused
	}{
		{"file:///a/b", false, "/a/b"},
		{"file:///a%20b/%C3%A9", false, "/a b/é"},
		{"file://localhost/a", false, "/a"},
		{"FILE:///a", false, "/a"},
		{"file:/a", false, "/a"},
		{"file:///a/../b/", false, "/b"},
		{"file:///a%00b", false, ""},
		{"file://elsewhere/a", false, ""},
		{"file:a", false, ""},
		{"http://localhost/a", false, ""},
		{"file://", false, ""},
		{"/plain", false, ""},
		{"%zz", false, ""},
		{"file:///C:/Users/me", true, `C:\Users\me`},
		{"file:///c%3A/Users/me", true, `c:\Users\me`},
		{"file:///C:", true, `C:\`},
		{"file://server/share/x", true, `\\server\share\x`},
	} {
		got, ok := pathOfFileURI(c.uri, c.windows)
		if c.want == "" {
			require.False(t, ok, c.uri)
			continue
		}
		require.True(t, ok, c.uri)
		require.Equal(t, c.want, got)
	}
}
