package nesting_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
)

// linkInPath makes this program available in PATH as name.
func linkInPath(t testing.TB, name string) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func writeScript(t testing.TB, text string) string {
	path := filepath.Join(t.TempDir(), "start.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700)) //nolint:gosec // a program
	return path
}

func TestHostsInScripts(t *testing.T) {
	linkInPath(t, "renamed")
	for text, want := range map[string]string{
		"mcp-host --root x stdio\n":             "--root x stdio",
		"exec mcp-host\nx\nstdio\n":             "x stdio",
		"exec renamed --root x stdio\n":         "--root x stdio",
		"exec renamed --root x \\\n  stdio\n":   "--root x stdio",
		"spawn('renamed', ['stdio'])\nwait()\n": "stdio wait",
		"sh -c 'renamed stdio'\n":               "stdio",
	} {
		args, ok := new(nesting.Search).FindHost([]string{writeScript(t, text)})
		require.True(t, ok, text)
		require.Equal(t, want, strings.Join(args, " "), text)
	}
	for _, text := range []string{"renamed version\n", "echo renamed\necho stdio\n", "# mcp-host stdio\n", "sh -x stdio\n"} {
		_, ok := new(nesting.Search).FindHost([]string{writeScript(t, text)})
		require.False(t, ok, text)
	}
	args, ok := new(nesting.Search).FindHost([]string{writeScript(t, "date\nexec renamed --root x \"$@\"\n"), "stdio"})
	require.True(t, ok)
	require.Equal(t, "--root x stdio $@ stdio", strings.Join(args, " "))
}

// TestHostsInSeveralCommands has one search for commands with a script in common, of which
// only some start a host.
func TestHostsInSeveralCommands(t *testing.T) {
	linkInPath(t, "renamed")
	var search nesting.Search
	script := writeScript(t, "date\nexec renamed \"$@\"\n")
	for _, c := range []struct {
		command []string
		want    bool
	}{
		{[]string{script, "version"}, false},
		{[]string{script, "stdio"}, true},
		{[]string{"sh", "-c", "renamed version; echo stdio"}, true}, // one line
		{[]string{script, "version"}, false},
		{[]string{"renamed", "stdio"}, true},
		{[]string{"date", "stdio"}, false},
		{[]string{script, "--root", "x", "serve"}, true},
	} {
		args, ok := search.FindHost(c.command)
		alone, okAlone := new(nesting.Search).FindHost(c.command)
		require.Equal(t, c.want, ok, c.command)
		require.Equal(t, okAlone, ok, c.command)
		require.Equal(t, alone, args, c.command)
	}
}

// BenchmarkCommandOfLargeScript reads a script of 50 KiB that names a subcommand in its
// last line.
func BenchmarkCommandOfLargeScript(b *testing.B) {
	var text strings.Builder
	for i := range 3000 {
		text.WriteString("word" + strings.Repeat("x", i%7) + " argument\n")
	}
	script := writeScript(b, text.String()+"echo stdio\n")
	for b.Loop() {
		if _, ok := new(nesting.Search).FindHost([]string{"sh", script}); ok {
			b.Fatal("found a host")
		}
	}
}
