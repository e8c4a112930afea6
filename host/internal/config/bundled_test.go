package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// People have servers that are called as a bundled tool is, among them the tool itself.
func TestAServerMayHaveABundledToolsName(t *testing.T) {
	dir, root, other := bundle(t), t.TempDir(), t.TempDir()
	file := filepath.Join(t.TempDir(), "c.yaml")
	bundled, err := config.Load(config.Flags{}, dir, "1", env(), nil)
	require.NoError(t, err)
	ls := bundled.Servers[0].Command[0]
	require.Equal(t, "ls", bundled.Servers[0].Name)
	require.NoError(t, os.Symlink(ls, filepath.Join(other, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(other, "ls"), nil, 0o755))

	load := func(text string) config.Config {
		text = strings.NewReplacer("LS", ls, "OTHER", other, "ROOT", root).Replace(text)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := config.Load(config.Flags{Config: file, Roots: []string{root}, State: other}, dir, "1", env(), nil)
		require.NoError(t, err)
		return c
	}
	of := func(c config.Config) (found []config.Server) {
		for _, s := range c.Servers {
			if s.Name == "ls" {
				found = append(found, s)
			}
		}
		return found
	}

	// Another program of that name takes its place, and that is said.
	for _, text := range []string{"servers: {ls: {command: OTHER/ls, args: [x]}}", "tool_dirs: [OTHER]\nservers: {ls: {command: OTHER/ls, args: [x]}}"} {
		c := load(text)
		require.Len(t, of(c), 1)
		require.False(t, of(c)[0].Bundled)
		require.Equal(t, []string{filepath.Join(other, "ls"), "x"}, of(c)[0].Command)
		require.Contains(t, strings.Join(c.Notices, "\n"), "server ls of "+file+" replaces the bundled tool of the same name")
	}
	c := load("servers: {ls: {url: https://h/mcp}}")
	require.Empty(t, of(c))
	require.Len(t, c.Remote, 1)
	require.NotEmpty(t, c.Notices)

	// The tool itself is served as it is, with arguments of its own.
	for args, want := range map[string][]string{
		"[--no-index]":               {"--root=" + root, "--state=" + other, "--no-index"},
		"[--root, ROOT/a, --x]":      {"--state=" + other, "--root", root + "/a", "--x"},
		"[--root=ROOT/a]":            {"--state=" + other, "--root=" + root + "/a"},
		"[ROOT/a]":                   {"--state=" + other, root + "/a"},
		"[--state, OTHER/s]":         {"--root=" + root, "--state", other + "/s"},
		"[--x=1, ROOT/a, --state=s]": {"--x=1", root + "/a", "--state=s"},
	} {
		for _, program := range []string{"LS", "OTHER/link"} {
			c := load("servers: {ls: {command: " + program + ", args: " + args + ", env: {K: v}}}")
			require.Len(t, of(c), 1)
			s := of(c)[0]
			require.True(t, s.Bundled && s.KillsOwnTree)
			require.Equal(t, want, s.Command[1:], args)
			require.Equal(t, []string{"K=v"}, s.Env)
			require.Equal(t, upstream.Legacy, s.Era)
			require.Equal(t, 5*time.Second, s.QuietTime)
			require.Empty(t, c.Notices)
			require.Equal(t, "ls", c.Views()[0].Name, "it is of the configuration")
		}
	}

	// It can be switched off.
	c = load("servers: {ls: {command: LS, enabled: false}}")
	require.Empty(t, of(c))
	require.Len(t, c.Off, 1)
}
