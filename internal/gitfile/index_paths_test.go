package gitfile_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// encodeIndex writes an index of a version with hashes of so many bytes.
func encodeIndex(version uint32, hash int, paths ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC"), version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(paths)))
	before := ""
	for _, path := range paths {
		start := len(b)
		b = append(b, make([]byte, 40+hash)...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(path)))
		if version == 4 {
			b = append(b, byte(len(before)))
			before = path
		}
		b = append(append(b, path...), 0)
		for version < 4 && (len(b)-start)%8 != 0 {
			b = append(b, 0)
		}
	}
	return append(b, make([]byte, hash)...)
}

func TestGitIndexEscapes(t *testing.T) {
	for _, hash := range []int{20, 32} {
		for _, version := range []uint32{2, 3, 4} {
			for path, want := range map[string]bool{
				".git/hooks/post-checkout": true, "a/.GIT/config": true, "../x": true, "a/./b": true, "/etc/x": true, "git~1/hooks/x": true,
				".g\u200cit/hooks/x": true, ".git /x": true, ".gitignore": false, "a/.gitmodules": false, "git/x": false, ".github/x": false, "..x": false,
			} {
				index := encodeIndex(version, hash, "README.md", path, "z")
				found, ok := gitfile.EscapingIndexPath(index)
				require.True(t, ok, "%d %d %q", version, hash, path)
				require.Equal(t, want, found == path, "%d %d %q: %q", version, hash, path, found)
			}
			_, ok := gitfile.EscapingIndexPath(encodeIndex(version, hash, "a", "b")[:60])
			require.False(t, ok)
		}
	}
	_, ok := gitfile.EscapingIndexPath([]byte("DIRC"))
	require.False(t, ok)
}

func FuzzGitIndexEscapes(f *testing.F) {
	for _, version := range []uint32{2, 3, 4} {
		f.Add(encodeIndex(version, 20, "a", ".git/x"))
	}
	f.Fuzz(func(t *testing.T, index []byte) {
		path, ok := gitfile.EscapingIndexPath(index)
		if ok && path != "" {
			require.True(t, bytes.Contains(index, []byte(path[len(path)-1:])))
		}
	})
}
