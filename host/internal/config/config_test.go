package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// bundle makes a directory with two tool binaries.
func bundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"mcp-ls", "mcp-view"} {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
	}
	return dir
}

// Where else than in the state directory the host keeps things, commands do not see.
func TestBashHidesWhatTheHostKeeps(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	name := "mcp-bash"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
	file := filepath.Join(dir, "toolroom.yaml")
	for text, want := range map[string][]string{
		"{}": nil,
		"store: {dir: kept}\naudit: {dir: /var/log/toolroom}": {"--hide=" + filepath.Join(dir, "kept"), "--hide=/var/log/toolroom"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := config.Load(config.Flags{Config: file, State: state}, dir, "1", env(), nil)
		require.NoError(t, err)
		require.Len(t, c.Servers, 1)
		require.Equal(t, append(append([]string{"--state=" + state}, want...), "--protect="+file), c.Servers[0].Command[1:])
	}
}

func TestSiblingsGetTheHostsRootsAndState(t *testing.T) {
	dir, root, state := bundle(t), t.TempDir(), filepath.Join(t.TempDir(), "s")
	c, err := config.Load(config.Flags{Roots: []string{root, root + ":ro"}, State: state}, dir, "1", env(), []string{"A=b", "TOOLROOM_TOKEN=secret"})
	require.NoError(t, err)
	require.Len(t, c.Servers, 2)
	require.Equal(t, []string{"--root=" + root, "--root=" + root + ":ro", "--state=" + state}, c.Servers[0].Command[1:])
	require.Equal(t, []string{"A=b"}, c.Servers[0].Env, "the host's credential is its own")
	require.True(t, c.Servers[0].Bundled && c.Servers[0].KillsOwnTree)
	require.Contains(t, c.Missing, "bash")

	// Without roots the tools look for themselves.
	c, err = config.Load(config.Flags{}, dir, "1", env("HOME", root), nil)
	require.NoError(t, err)
	require.Empty(t, c.Servers[0].Command[1:])
	require.Equal(t, filepath.Join(root, ".local", "state", "toolroom"), c.State)

	// What they may do beyond that is theirs to be told.
	c, err = config.Load(config.Flags{Allow: sandbox.Config{AllowRootDir: true, AllowPaths: []string{"*.pem", "-x"}, AllowWrites: []string{".git/*"}}}, dir, "1", env("HOME", root), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"--allow-root-dir", "--allow-path=*.pem", "--allow-path=-x", "--allow-write=.git/*"}, c.Servers[0].Command[1:])
	_, err = config.Load(config.Flags{Allow: sandbox.Config{AllowPaths: []string{"["}}}, dir, "1", env("HOME", root), nil)
	require.ErrorContains(t, err, `allow-path "[": not a valid glob`)

	t.Chdir(root)
	c, err = config.Load(config.Flags{Roots: []string{"."}}, dir, "1", env("HOME", root), nil)
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(strings.TrimPrefix(c.Servers[0].Command[1], "--root=")))
}

func TestRootsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for root, want := range map[string]string{"": "name a directory", ":ro": "name a directory", file: "is not a directory", file + "x": "x"} {
		_, err := config.Load(config.Flags{Roots: []string{root}}, t.TempDir(), "1", env(), nil)
		require.ErrorContains(t, err, want)
	}
}

func TestStateDirectory(t *testing.T) {
	abs := t.TempDir()
	for _, c := range []struct {
		flag string
		env  []string
		want string
	}{
		{abs, []string{"MCP_STATE_DIR", "other"}, abs},
		{"", []string{"MCP_STATE_DIR", abs, "XDG_STATE_HOME", "other"}, abs},
		{"", []string{"XDG_STATE_HOME", abs, "HOME", "other"}, filepath.Join(abs, "toolroom")},
		{"", []string{"XDG_STATE_HOME", "relative", "HOME", abs}, filepath.Join(abs, ".local", "state", "toolroom")},
		{"", nil, ""},
	} {
		got, err := config.Load(config.Flags{State: c.flag}, t.TempDir(), "1", env(c.env...), nil)
		require.NoError(t, err)
		require.Equal(t, c.want, got.State)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	load := func(text string) ([]config.Server, error) {
		name := filepath.Join(dir, "c.yaml")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		c, err := config.Load(config.Flags{Config: name}, bundle(t), "1", env(), []string{"A=b"})
		if err != nil {
			return nil, err
		}
		return c.Servers[2:], nil
	}
	servers, err := load(`
servers:
  b: {command: ./bin/b, args: [x, "y z"], env: {K: v}, cwd: sub, era: modern, start_timeout: 60s}
mcpServers:
  a: {type: stdio, command: ` + "'" + filepath.Join(dir, "a") + "'" + `}
  off: {command: no, enabled: false}
`)
	require.NoError(t, err)
	require.Len(t, servers, 2)
	require.Equal(t, "a", servers[0].Name, "in the order of names")
	b := servers[1]
	require.Equal(t, []string{filepath.Join(dir, "bin", "b"), "x", "y z"}, b.Command)
	require.Equal(t, []string{"A=b", "K=v"}, b.Env)
	require.Equal(t, filepath.Join(dir, "sub"), b.Dir)
	require.Equal(t, upstream.Modern, b.Era)
	require.False(t, b.Bundled || b.KillsOwnTree)

	for text, want := range map[string]string{
		`{"servers":{"x":{"command":"no-such-program-anywhere"}}}`:      "server x: command: \"no-such-program-anywhere\": not found on PATH",
		`servers: {x: {args: [a]}}`:                                     "command is missing",
		`servers: {x: {command: ./a, start_timeout: soon}}`:             "start_timeout",
		`servers: {x: {command: ./a, era: stone}}`:                      "era",
		`servers: {x: {command: ./a, type: sse}}`:                       "transport sse needs a url",
		"servers: {x: {command: ./a}}\nmcpServers: {x: {command: ./a}}": "appears twice",
		`servers: [`: "c.yaml",
		`unknown: 1`: "unknown",
		`servers: {x: {command: ./a, env: {K: [1]}}}`: "c.yaml",
	} {
		_, err := load(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestTheUsersOwnFileIsReadIfItIsThere(t *testing.T) {
	xdg := t.TempDir()
	c, err := config.Load(config.Flags{}, bundle(t), "1", env("XDG_CONFIG_HOME", xdg), nil)
	require.NoError(t, err)
	require.Empty(t, c.File)
	require.NoError(t, os.Mkdir(filepath.Join(xdg, "toolroom"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(xdg, "toolroom", "toolroom.yaml"), []byte("servers: {x: {command: ./x}}"), 0o600))
	c, err = config.Load(config.Flags{}, bundle(t), "1", env("XDG_CONFIG_HOME", xdg), nil)
	require.NoError(t, err)
	require.Len(t, c.Servers, 3)

	// One in the working directory is somebody else's.
	cwd := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(cwd, "toolroom.yaml"), []byte("servers: {x: {command: ./x}}"), 0o600))
	t.Chdir(cwd)
	c, err = config.Load(config.Flags{}, bundle(t), "1", env("XDG_CONFIG_HOME", cwd), nil)
	require.NoError(t, err)
	require.Len(t, c.Servers, 2)
}

func TestTokenIsMadeOnce(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	tokens := make([]string, 10)
	for i := range tokens {
		wg.Go(func() {
			token, _, err := config.Token("", state, env())
			if err != nil {
				t.Error(err)
			}
			tokens[i] = token
		})
	}
	wg.Wait()
	for _, token := range tokens {
		require.Equal(t, tokens[0], token)
		require.Len(t, token, 43)
	}
	entries, err := os.ReadDir(state)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestTokenIsChecked(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	_, _, err := config.Token(file("short", "short", 0o600), "", env())
	require.ErrorContains(t, err, "needs at least 16")
	_, _, err = config.Token(file("odd", strings.Repeat("é", 20), 0o600), "", env())
	require.ErrorContains(t, err, "a header cannot carry")
	_, _, err = config.Token(filepath.Join(dir, "none"), "", env())
	require.ErrorContains(t, err, "none")
	_, _, err = config.Token("", "", env())
	require.ErrorContains(t, err, "no directory for the token")
	_, _, err = config.Token("", dir, env("TOOLROOM_TOKEN", "short"))
	require.ErrorContains(t, err, "TOOLROOM_TOKEN has 5")
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(file("token", strings.Repeat("t", 40), 0o644), 0o644)) // whatever the umask
		_, _, err = config.Token("", dir, env())
		require.ErrorContains(t, err, "is readable by other users")
	}
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:0": true, "127.1.2.3:8080": true, "[::1]:8080": true, "localhost:1": true,
		":8080": false, "0.0.0.0:1": false, "[::]:1": false, "example.org:1": false, "192.168.1.1:1": false,
	} {
		got, err := config.Loopback(listen)
		require.NoError(t, err)
		require.Equal(t, want, got, listen)
	}
	_, err := config.Loopback("8080")
	require.Error(t, err)
}
