package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
)

func serverNames(c config.Config) []string {
	var names []string
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	return names
}

func TestSourcesAndWhatCountsMore(t *testing.T) {
	xdg, cwd, state := t.TempDir(), t.TempDir(), t.TempDir()
	t.Chdir(cwd)
	getenv := env("XDG_CONFIG_HOME", xdg, "MCP_STATE_DIR", state)
	load := func(f config.Flags) config.Config {
		c, err := config.Load(f, t.TempDir(), "1", getenv, nil)
		require.NoError(t, err)
		return c
	}
	user := filepath.Join(xdg, "toolroom", "toolroom.toml") // by any of its names
	write(t, user, "[servers.a]\ncommand = \"/user/a\"\n[servers.b]\ncommand = \"/user/b\"\n[servers.off]\ncommand = \"/user/off\"")
	local := filepath.Join(cwd, "toolroom.yaml")
	text := "servers: {a: {command: /local/a}, c: {command: ./c}, off: {enabled: false}}"
	write(t, local, text)

	c := load(config.Flags{})
	require.Equal(t, []string{"a", "b", "off"}, serverNames(c))
	require.Equal(t, user, c.File)
	require.Len(t, c.Notices, 1)
	require.Contains(t, c.Notices[0], local+" is not used: not trusted; inspect it with mcp-host config check toolroom.yaml, then run mcp-host config trust")

	require.NoError(t, config.Trust(state, "toolroom.yaml", []byte(text)))
	// Relative or not, it is the file.
	require.NotContains(t, serverNames(load(config.Flags{})), "c")
	require.NoError(t, config.Trust(state, local, []byte(text)))
	c = load(config.Flags{})
	require.Equal(t, []string{"a", "b", "c"}, serverNames(c))
	require.Equal(t, "/local/a", c.Servers[0].Command[0])
	require.Contains(t, strings.Join(c.Notices, "\n"), "server a: is read from here, not from "+user)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(filepath.Join(state, "trusted.json"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	// A flag adds; a file named outright is the only one.
	c = load(config.Flags{MCPServers: "/x/b;K=v '/x/n m' --o"})
	require.Equal(t, []string{"a", "b", "c", "b-2", "n-m"}, serverNames(c))
	require.Equal(t, []string{"K=v"}, c.Servers[4].Env)
	other := filepath.Join(cwd, "other.json")
	write(t, other, `{"mcpServers": {"z": {"command": "./z"}}}`)
	c = load(config.Flags{Config: "other.json"})
	require.Equal(t, []string{"z"}, serverNames(c))
	require.Equal(t, filepath.Join(cwd, "z"), c.Servers[0].Command[0])

	// What has changed is not trusted any more, nor what is taken back.
	write(t, local, text+"\n")
	require.Contains(t, strings.Join(load(config.Flags{}).Notices, "\n"), "not trusted: changed since it was trusted")
	write(t, local, text)
	require.NoError(t, config.Untrust(state, local))
	require.NotContains(t, serverNames(load(config.Flags{})), "c")
}

func TestTrustThatCannotBeKept(t *testing.T) {
	cwd, state := t.TempDir(), t.TempDir()
	t.Chdir(cwd)
	write(t, "toolroom.yaml", "servers: {a: {command: /a}}")
	c, err := config.Load(config.Flags{}, cwd, "1", env(), nil)
	require.NoError(t, err)
	require.Empty(t, c.Servers)
	require.Contains(t, c.Notices[0], "no directory for trusted configurations")
	require.ErrorContains(t, config.Untrust("", "toolroom.yaml"), "no directory")
	write(t, filepath.Join(state, "trusted.json"), "{")
	require.ErrorContains(t, config.Untrust(state, "toolroom.yaml"), "is damaged")
	c, err = config.Load(config.Flags{State: state}, cwd, "1", env(), nil)
	require.NoError(t, err)
	require.Empty(t, c.Servers)
}

// A value may be what a file holds, beside the configuration or elsewhere; what is no
// such file is said, and never what it holds.
func TestValuesFromFiles(t *testing.T) {
	dir := t.TempDir()
	file, key := filepath.Join(dir, "opencode.json"), filepath.Join(dir, "keys", "key")
	load := func(value string) (config.Config, error) {
		write(t, file, `{"mcp": {"x": {"type": "local", "command": ["/bin/x", "`+value+`"], "environment": {"K": "`+value+`"}}}}`)
		return config.Load(config.Flags{Config: file}, t.TempDir(), "1", env("HOME", dir), nil)
	}
	write(t, key, "SEKRIT value\n\n")
	for _, value := range []string{"{file:keys/key}", "{file:./keys/key}", "{file:~/keys/key}", "{file:" + filepath.ToSlash(key) + "}"} {
		c, err := load(value)
		require.NoError(t, err, value)
		require.Equal(t, []string{"/bin/x", "SEKRIT value"}, c.Servers[0].Command)
		require.Equal(t, []string{"K=SEKRIT value"}, c.Servers[0].Env)
		require.NotContains(t, fmt.Sprintf("%v %+v", c.Views(), c.Servers[0].Spec), "SEKRIT")
		require.Contains(t, c.Servers[0].Secrets, secret.Text("SEKRIT value"), "it is hidden in what the server says, too")
		require.Contains(t, c.Watched, key, "a change of it is a change of the configuration")
	}
	write(t, filepath.Join(dir, "large"), strings.Repeat("SEKRIT", 20_000))
	write(t, filepath.Join(dir, "binary"), "SEKRIT\x00")
	for value, want := range map[string]string{
		"{file:none}":   "no such file",
		"{file:keys}":   "it is not a regular file",
		"{file:large}":  "it has more than 64 KiB",
		"{file:binary}": "it is not UTF-8 text",
	} {
		_, err := load(value)
		require.ErrorContains(t, err, "server x: command: "+value+": "+want)
		require.ErrorContains(t, err, "server x: env: K: "+value+": "+want)
		require.NotContains(t, err.Error(), "SEKRIT")
	}
}

func TestServersAreResolved(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".vscode", "mcp.json")
	write(t, filepath.Join(dir, ".env"), "FROM_FILE=f\nK=file")
	write(t, filepath.Join(dir, ".vscode", "bin", "npx"), "")
	write(t, file, `{
	"inputs": [{"type": "promptString", "id": "key", "description": "Key", "password": true}],
	"servers": {
		"a": {"command": "./bin/npx", "args": ["${HOST}", "$$1"], "cwd": "${workspaceFolder}", "envFile": "${workspaceFolder}/.env",
			"env": {"K": "${input:key}", "GONE": null, "PORT": 1}},
		"b": {"command": "./bin/b", "startupTimeoutSec": 3},
		"r": {"type": "http", "url": "https://h/mcp", "bearer_token_env_var": "HOST"},
		"off": {"command": "${NOT_SET}", "disabled": true}
	}}`)
	environ := []string{"HOST=h", "GONE=x", "TOOLROOM_INPUT_KEY=k", "TOOLROOM_TOKEN=t"}
	c, err := config.Load(config.Flags{Config: file}, dir, "7", env(), environ)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, serverNames(c))
	a := c.Servers[0]
	require.Equal(t, []string{filepath.Join(dir, ".vscode", "bin", "npx"), "h", "$1"}, a.Command)
	require.Equal(t, []string{"HOST=h", "FROM_FILE=f", "K=k", "PORT=1"}, a.Env)
	require.Equal(t, dir, a.Dir)
	require.Equal(t, 60*time.Second, a.StartTimeout, "npx may have to download")
	require.Equal(t, 3*time.Second, c.Servers[1].StartTimeout)
	require.Len(t, c.Remote, 1)
	require.Equal(t, "h", c.Remote[0].APIKey.Reveal())
	require.Equal(t, "streamable-http", c.Remote[0].Transport)
	require.Contains(t, c.Watched, filepath.Join(dir, ".env"))
	require.Equal(t, []string{"a", "b", "r"}, []string{c.Views()[0].Name, c.Views()[1].Name, c.Views()[2].Name})
}

// What a project's file says is said as from the project, where the product that
// it is of starts its servers; a file of that name in the user's own directory
// is of no project.
func TestPathsOfAProjectsFile(t *testing.T) {
	home, project, cwd := t.TempDir(), t.TempDir(), t.TempDir()
	t.Chdir(cwd)
	load := func(file, text string) config.Server {
		write(t, file, text)
		c, err := config.Load(config.Flags{Config: file}, t.TempDir(), "1", env("HOME", home+"/"), nil)
		require.NoError(t, err)
		require.Len(t, c.Servers, 1)
		return c.Servers[0]
	}
	const codex = "[mcp_servers.x]\ncommand = \"./scripts/launch.sh\"\ncwd = \"sub\"\nargs = [\"${workspaceFolder}\"]"
	const cursor = `{"mcpServers": {"x": {"command": "./bin/x", "args": ["${workspaceFolder}"]}}}`
	write(t, filepath.Join(project, "scripts", "launch.sh"), "")
	require.NoError(t, os.Mkdir(filepath.Join(project, "sub"), 0o700))
	s := load(filepath.Join(project, ".codex", "config.toml"), codex)
	require.Equal(t, []string{filepath.Join(project, "scripts", "launch.sh"), project}, s.Command)
	require.Equal(t, filepath.Join(project, "sub"), s.Dir)
	for _, name := range []string{".cursor/mcp.json", ".mcp.json"} {
		s = load(filepath.Join(project, filepath.FromSlash(name)), cursor)
		require.Equal(t, []string{filepath.Join(project, "bin", "x"), project}, s.Command)
		require.Equal(t, project, s.Dir)
		s = load(filepath.Join(home, filepath.FromSlash(name)), cursor)
		require.Equal(t, cwd, s.Command[1])
		require.Empty(t, s.Dir)
	}
	s = load(filepath.Join(project, "toolroom.yaml"), `servers: {x: {command: ./bin/x, cwd: sub}}`)
	require.Equal(t, []string{filepath.Join(project, "bin", "x")}, s.Command)
	require.Equal(t, filepath.Join(project, "sub"), s.Dir)

	found, err := config.Import(filepath.Join(project, ".codex", "config.toml"), env("HOME", home))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(project, "scripts", "launch.sh"), found.Servers[0].Command[0])
}

// A server that is given a PATH is looked up there, as other hosts do: it may
// have another version of the program than the host's.
func TestAProgramIsLookedUpOnItsServersPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs have extensions there")
	}
	hosts, its := t.TempDir(), t.TempDir()
	for _, dir := range []string{hosts, its} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "both"), nil, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(its, "node"), nil, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(hosts, "sh"), nil, 0o755))
	t.Setenv("PATH", hosts)
	file := filepath.Join(t.TempDir(), "c.json")
	for command, want := range map[string]string{"node": its, "both": its, "sh": hosts} {
		write(t, file, `{"mcpServers": {"x": {"command": "`+command+`", "env": {"PATH": "`+its+`:${PATH}"}}}}`)
		c, err := config.Load(config.Flags{Config: file}, t.TempDir(), "1", env(), []string{"PATH=" + hosts})
		require.NoError(t, err)
		require.Equal(t, filepath.Join(want, command), c.Servers[0].Command[0])
	}
}

// A file that is there and cannot be read may hold a policy.
func TestTheUsersFileIsNotPassedOverWhenItCannotBeRead(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("everything can be read")
	}
	xdg := t.TempDir()
	file := filepath.Join(xdg, "toolroom", "toolroom.yaml")
	write(t, file, "policy: {block: ['*']}")
	require.NoError(t, os.Chmod(file, 0))
	_, err := config.Load(config.Flags{}, t.TempDir(), "1", env("XDG_CONFIG_HOME", xdg), nil)
	require.ErrorContains(t, err, file)
	require.NoError(t, os.Chmod(filepath.Dir(file), 0))
	t.Cleanup(func() { os.Chmod(filepath.Dir(file), 0o700) }) //nolint:errcheck // it is temporary
	_, err = config.Load(config.Flags{}, t.TempDir(), "1", env("XDG_CONFIG_HOME", xdg), nil)
	require.NoError(t, err, "somebody else's directory")
}

func TestProblemsOfLoadingNameServerAndField(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bad.env"), "SEKRIT")
	for text, want := range map[string]string{
		`{"x": {"command": "${NOPE}"}}`:                             "c.json:1: server x: command: variable NOPE is not set",
		`{"x": {"command": "/a", "env": {"K": "SEKRIT${NOPE}"}}}`:   "server x: env: K: variable NOPE is not set",
		`{"x": {"command": "/a", "env_file": "bad.env"}}`:           "bad.env:1: want NAME=value",
		`{"x": {"command": "/a", "env_file": "none.env"}}`:          "server x: env_file: ",
		`{"x": {"command": "/a", "env_file": "."}}`:                 "is not a regular file",
		`{"x": {"url": "h/mcp"}}`:                                   "server x: url: want an address that begins with http:// or https://",
		`{"x": {"url": "ftp://SEKRIT@h"}}`:                          "server x: url: want an address that begins",
		`{"x": {"url": "http://"}}`:                                 "server x: url: the address has no host",
		`{"x": {"url": "http://SEKRIT:%zz@h"}}`:                     "server x: url: not an address",
		`{"x": {"url": "http://h", "auth_token_env": "NOPE"}}`:      "server x: auth_token_env: variable NOPE is not set",
		`{"x": {"command": "npx -y no-such-thing --token SEKRIT"}}`: "put only the program here, and its arguments in args",
		`{"x": {"command": "API_KEY=SEKRIT npx"}}`:                  `server x: command: "API_KEY=*** …": not found on PATH`,
		`{"x": {"command": "${P}"}}`:                                `command: "${P}": not found on PATH`,
	} {
		file := filepath.Join(dir, "c.json")
		write(t, file, `{"mcpServers": `+text+`}`)
		_, err := config.Load(config.Flags{Config: file}, dir, "1", env(), []string{"P=SEKRIT-program"})
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "SEKRIT", text)
	}
	_, err := config.Load(config.Flags{MCPServers: "T=SEKRIT no-such-program-x SEKRIT"}, dir, "1", env("XDG_CONFIG_HOME", dir), nil)
	require.ErrorContains(t, err, "--mcpservers: server no-such-program-x: command")
	require.NotContains(t, err.Error(), "SEKRIT")
}

func TestToolDirs(t *testing.T) {
	dir := t.TempDir()
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	for _, name := range []string{"mcp-one", "mcp-two", "three"} {
		write(t, filepath.Join(dir, "tools", name+suffix), "")
		require.NoError(t, os.Chmod(filepath.Join(dir, "tools", name+suffix), 0o755))
	}
	file := filepath.Join(dir, "toolroom.yaml")
	write(t, file, "tool_dirs: [tools]\nservers: {two: {command: /mine}}")
	c, err := config.Load(config.Flags{Config: file}, dir, "1", env(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, serverNames(c))
	require.Equal(t, filepath.Join(dir, "tools", "mcp-one"+suffix), c.Servers[0].Command[0])
	require.Equal(t, "/mine", c.Servers[1].Command[0], "what is configured counts more")
	alone := filepath.Join(dir, "other.yaml") // no name of toolroom's own
	write(t, alone, "tool_dirs: [tools]")
	c, err = config.Load(config.Flags{Config: alone}, dir, "1", env(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, serverNames(c))
	write(t, file, "tool_dirs: [none]")
	_, err = config.Load(config.Flags{Config: file}, dir, "1", env(), nil)
	require.ErrorContains(t, err, "tool_dirs: ")
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	load := func(text string) config.Config {
		file := filepath.Join(dir, "toolroom.yaml")
		write(t, file, text)
		c, err := config.Load(config.Flags{Config: file}, dir, "1", env(), nil)
		require.NoError(t, err)
		return c
	}
	base := "servers:\n  a: {command: /a}\n  r: {url: http://h/mcp, api_key: k}\n"
	require.True(t, config.Diff(load(base), load("# a line\n"+base)).IsEmpty(), "where it is written makes no difference")
	for text, changed := range map[string]string{
		"{command: /b}": "a", "{command: /a, env: {K: v}}": "a", "{command: /a, scope: call}": "a",
	} {
		c := config.Diff(load(base), load(strings.Replace(base, "{command: /a}", text, 1)))
		require.Equal(t, []string{changed}, slices.Concat(c.Added, c.Removed, c.Changed))
	}
	// A program for headers that the user has trusted again must be used with its new content.
	helped := load(base)
	helped.HelperFiles = map[string][]trust.File{"r": {{Path: "/helper", State: "new"}}}
	require.Equal(t, []string{"r"}, config.Diff(load(base), helped).Changed)
	for _, text := range []string{"{command: /a, timeout: 3s}", "{command: /a, tools: {allow: [x]}}", "{command: /a, prefix: x}", "{command: /a, max_concurrent: 2}"} {
		c := config.Diff(load(base), load(strings.Replace(base, "{command: /a}", text, 1)))
		require.Equal(t, "tools served differently: a", c.String(), text)
	}
	for key, text := range map[string]string{
		"profiles": "{p: {}}", "tool_pins": "enforce", "store": "memory", "audit": "off", "max_result": "2KB", "validate": "off", "policy": "{block: [x]}",
		"agents": "{review: {instructions: Review.}}",
		"cache":  "{tools: [x]}", "limits": "{queue: 3}", "timeout": "3s", "retry": "off", "breaker": "off", "approval": "{expires: 1m}",
	} {
		require.Equal(t, "set: "+key, config.Diff(load(base), load(base+key+": "+text)).String())
	}
	for i := range reflect.TypeFor[config.Stages]().NumField() { // none is forgotten
		var after config.Config
		stage := reflect.ValueOf(&after.Stages).Elem().Field(i)
		changed := false
		for j := range stage.NumField() {
			if f := stage.Field(j); f.CanSet() && f.CanInt() {
				f.SetInt(1)
				changed = true
			} else if f.CanSet() && f.Kind() == reflect.Bool {
				f.SetBool(true)
				changed = true
			}
		}
		require.True(t, changed)
		require.Len(t, config.Diff(config.Config{}, after).Settings, 1, stage.Type())
	}
	require.Equal(t, "set: servers", config.Diff(load(base), load(base+"  off: {enabled: false}")).String())
	c := config.Diff(load(base), load(strings.Replace(base, "api_key: k", "api_key: l", 1)))
	require.Equal(t, []string{"r"}, c.Changed)
	c = config.Diff(load(base), load("servers: {n: {url: http://h/sse}}"))
	require.Equal(t, []string{"n"}, c.Added)
	require.Equal(t, []string{"a", "r"}, c.Removed)
}
