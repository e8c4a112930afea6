//go:build unix

package sandbox_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// words are the parts of random paths. BASE means the absolute directory that holds
// the roots.
var words = []string{"a", "b", "c", "..", ".", "", "root", "second", "outside", "secret.txt", "BASE", "../..", "alias", "f"}

// path makes a path out of bytes.
func randomPath(picks []byte) string {
	parts := make([]string, len(picks))
	for i, pick := range picks {
		parts[i] = words[int(pick)%len(words)]
	}
	return strings.Join(parts, "/")
}

// grow makes a random tree: each five bytes are one directory, file or link.
// Nothing is made beyond base, where the links lead that were made before.
func grow(t *testing.T, base string, seed []byte) {
	in, err := os.OpenRoot(base)
	require.NoError(t, err)
	defer in.Close()
	for n := 0; len(seed) >= 5 && n < 24; n++ {
		kind, where, target := seed[0], seed[1:3], seed[2:5]
		seed = seed[5:]
		at := filepath.Join("root", filepath.Clean("/"+strings.ReplaceAll(randomPath(where), "BASE", "")))
		if at == "root" || in.MkdirAll(filepath.Dir(at), 0o755) != nil {
			continue
		}
		// What cannot be made, for something else is there, is left out.
		switch kind % 3 {
		case 0:
			_ = in.Mkdir(at, 0o755)
		case 1:
			_ = in.WriteFile(at, []byte("inside"), 0o644)
		default:
			_ = in.Symlink(strings.ReplaceAll(randomPath(target), "BASE", base), at)
		}
	}
}

// FuzzResolve checks for any tree and name: an object that opens is inside the
// roots, the system finds the same object by that name, and both resolvers agree.
func FuzzResolve(f *testing.F) {
	f.Add([]byte{2, 0, 3, 8, 9, 2, 1, 10, 8, 9, 1, 2, 0, 0, 0}, []byte{0, 9}, "")
	f.Add([]byte{0, 0, 1, 0, 0, 2, 1, 3, 6, 0, 1, 0, 0, 0, 0}, []byte{3, 6, 0}, "x")
	f.Add([]byte{2, 0, 12, 1, 1, 2, 1, 11, 7, 13}, []byte{10, 12, 0}, "../outside/secret.txt")
	f.Add([]byte{0}, []byte{0}, "\u008f") // nothing is left of it when folded
	f.Fuzz(func(t *testing.T, seed, picks []byte, tail string) {
		base := memoryDir(t)
		for _, dir := range []string{"root", "second", "outside"} {
			require.NoError(t, os.Mkdir(filepath.Join(base, dir), 0o755))
		}
		require.NoError(t, os.WriteFile(filepath.Join(base, "outside/secret.txt"), []byte(outsideMark), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(base, "second/f"), []byte("inside"), 0o644))
		require.NoError(t, os.Symlink("root", filepath.Join(base, "alias")))
		grow(t, base, seed)
		name := randomPath(picks[:min(len(picks), 8)])
		if tail != "" {
			name += "/" + tail
		}
		name = strings.ReplaceAll(name, "BASE", base)
		if strings.HasPrefix(name, "/"+base) {
			name = name[1:]
		}
		config := sandbox.Config{Roots: []string{filepath.Join(base, "root"), filepath.Join(base, "second")}, Getenv: noEnv}
		first := probe(t, sandbox.New(config), base, name)
		second := probe(t, sandbox.NewPortable(config), base, name)
		require.Equal(t, first, second, "%q", name)
	})
}

// probe opens a name every way and returns what came of it.
func probe(t *testing.T, s *sandbox.Sandbox, base, name string) []string {
	fs, err := s.FS(context.Background())
	require.NoError(t, err)
	defer fs.Close()
	var out []string
	st, err := fs.Stat(name)
	out = append(out, string(toolerr.CodeOf(err)), st.Mode.String())
	d, err := fs.OpenDir(name)
	out = append(out, string(toolerr.CodeOf(err)))
	if err == nil {
		requireInside(t, base, d.Path())
		out = append(out, d.Path())
		require.NoError(t, d.Close())
	}
	file, err := fs.Open(name)
	out = append(out, string(toolerr.CodeOf(err)))
	if err != nil {
		return out
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	require.NoError(t, err)
	require.NotContains(t, string(content), outsideMark)
	requireInside(t, base, file.Path)
	info, err := file.File.Stat()
	require.NoError(t, err)
	real, err := os.Lstat(file.Path)
	require.NoError(t, err)
	require.True(t, os.SameFile(info, real), "Path is not the file's")
	asked := name
	if !filepath.IsAbs(name) {
		asked = filepath.Join(base, "root") + "/" + name
	}
	if system, err := os.Stat(asked); err == nil {
		require.True(t, os.SameFile(info, system), "%q is another file to the system", name)
	}
	return append(out, file.Path, string(content))
}

func requireInside(t *testing.T, base, path string) {
	real, err := filepath.EvalSymlinks(path)
	require.NoError(t, err)
	require.Equal(t, path, real)
	require.True(t, strings.HasPrefix(real+"/", base+"/root/") || strings.HasPrefix(real+"/", base+"/second/"), real)
}
