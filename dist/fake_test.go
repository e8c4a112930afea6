package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeRelease returns a release whose programs are copies of this test's program.
func fakeRelease(t *testing.T, platforms ...Platform) *Release {
	t.Helper()
	repo, err := filepath.Abs("..")
	require.NoError(t, err)
	names, err := programs(repo)
	require.NoError(t, err)
	require.Contains(t, names, "mcp-host")
	r := &Release{
		Repo: repo, Out: t.TempDir(), Version: "v1.2.3", Commit: "0123456789abcdef0123456789abcdef01234567",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Platforms: platforms,
		programs: []string{"mcp-ls", "mcp-host"}, binaries: map[Platform]string{}, hashes: map[string]string{}, npmHashes: map[string]programHash{},
		documents: []file{
			{name: "LICENSE", mode: 0o644, data: []byte("licence\n")},
			{name: "README.md", mode: 0o644, data: []byte("readme\n")},
			{name: "THIRD_PARTY_LICENSES.txt", mode: 0o644, data: []byte("notices\n")},
			{name: "completions/mcp-host.bash", mode: 0o644, data: []byte("complete\n")},
		},
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, p := range platforms {
		r.binaries[p] = t.TempDir()
		for _, name := range r.programs {
			require.NoError(t, os.Symlink(self, filepath.Join(r.binaries[p], p.program(name))))
		}
	}
	return r
}

// fakeArchives sets the checksums of all archives without building them.
func fakeArchives(t *testing.T) *Release {
	t.Helper()
	platforms, err := parsePlatforms(allPlatforms)
	require.NoError(t, err)
	r := fakeRelease(t)
	r.Platforms = platforms
	for i, p := range platforms {
		r.hashes[r.archiveFile(p)] = hexSum([]byte{byte(i)})
	}
	for i, target := range bundleTargets {
		r.hashes[r.bundleFile("mcp-host", target)] = hexSum([]byte{byte(100 + i)})
	}
	return r
}

func decode(t *testing.T, text []byte) (value map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &value), "%s", text)
	return value
}
