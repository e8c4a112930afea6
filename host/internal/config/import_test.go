package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/internal/filelock"
)

func TestLocations(t *testing.T) {
	home := filepath.Join(t.TempDir(), "h")
	for _, c := range []struct {
		product, system string
		env             []string
		want            string // the first
	}{
		{"claude", "darwin", nil, "Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude", "windows", nil, "AppData/Roaming/Claude/claude_desktop_config.json"},
		{"claude", "windows", []string{"APPDATA", filepath.Join(home, "R")}, "R/Claude/claude_desktop_config.json"},
		{"claude", "linux", nil, ".config/Claude/claude_desktop_config.json"},
		{"claude", "linux", []string{"XDG_CONFIG_HOME", filepath.Join(home, "X")}, "X/Claude/claude_desktop_config.json"},
		{"vscode", "darwin", nil, "Library/Application Support/Code/User/mcp.json"},
		{"vscode", "windows", nil, "AppData/Roaming/Code/User/mcp.json"},
		{"vscode", "linux", nil, ".config/Code/User/mcp.json"},
		{"cursor", "linux", nil, ".cursor/mcp.json"},
		{"codex", "darwin", nil, ".codex/config.toml"},
		{"codex", "linux", []string{"CODEX_HOME", filepath.Join(home, "C")}, "C/config.toml"},
		{"gemini", "windows", nil, ".gemini/settings.json"},
		{"opencode", "darwin", nil, ".config/opencode/opencode.json"},
		{"opencode", "linux", []string{"OPENCODE_CONFIG", filepath.Join(home, "o.json")}, "o.json"},
		{"zed", "linux", []string{"XDG_CONFIG_HOME", filepath.Join(home, "X")}, "X/zed/settings.json"},
		{"zed", "darwin", nil, ".config/zed/settings.json"},
		{"zed", "windows", nil, "AppData/Roaming/Zed/settings.json"},
		{"windsurf", "linux", nil, ".codeium/windsurf/mcp_config.json"},
	} {
		files := config.Locations(c.product, c.system, env(append(c.env, "HOME", home)...))
		require.NotEmpty(t, files)
		require.Equal(t, filepath.Join(home, filepath.FromSlash(c.want)), files[0], "%s on %s", c.product, c.system)
	}
	require.Contains(t, config.Locations("claude", "linux", env("HOME", home)), filepath.Join(home, ".claude.json"))
	require.Contains(t, config.Locations("claude", "linux", env("HOME", home, "CLAUDE_CONFIG_DIR", home+"2")), filepath.Join(home+"2", ".claude.json"))
	require.Empty(t, config.Locations("claude", "linux", env()))
	for _, product := range config.Products() {
		require.NotEmpty(t, config.Locations(product, runtime.GOOS, env("HOME", home)), product)
	}
}

func TestImport(t *testing.T) {
	home := t.TempDir()
	getenv := env("HOME", home, "XDG_CONFIG_HOME", filepath.Join(home, ".config"), "APPDATA", filepath.Join(home, "AppData", "Roaming"))
	desktop := config.Locations("claude", runtime.GOOS, getenv)[0]
	write(t, desktop, `{"mcpServers": {
		"files": {"command": "npx", "args": ["-y", "server", "--token", "SEKRIT"], "env": {"API_KEY": "SEKRIT", "OTHER": "${OTHER}"}},
		"mine": {"command": "./bin/mine", "cwd": "sub"},
		"grep": {"command": "npx"},
		"bad": {"command": ["a", {}]}}}`)
	cwd, err := os.Getwd()
	require.NoError(t, err)
	project := strings.ReplaceAll(cwd, `\`, `\\`)
	write(t, filepath.Join(home, ".claude.json"), `{"numStartups": 3, "mcpServers": {"files": {"command": "other"}, "web": {"type": "http", "url": "https://u:SEKRIT@h/mcp"}},
		"projects": {"`+project+`": {"mcpServers": {"here": {"command": "here"}}}, "/elsewhere": {"mcpServers": {"there": {"command": "there"}}}}}`)

	found, err := config.Import("claude", getenv)
	require.NoError(t, err)
	var names []string
	for _, s := range found.Servers {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"files", "grep", "mine", "here", "web"}, names)
	problems := found.Problems.Error()
	for _, want := range []string{
		"server bad: command: want a list of strings; it contains a map",
		"server files: already exists from another file; ignored",
	} {
		require.Contains(t, problems, want)
	}
	preview, err := found.Preview()
	require.NoError(t, err)
	require.NotContains(t, preview, "SEKRIT")
	require.Contains(t, preview, "API_KEY: '***'")
	require.Contains(t, preview, "OTHER: ${OTHER}")
	require.Contains(t, preview, "args: [-y, server, --token, '***']")
	require.Contains(t, preview, filepath.Join(filepath.Dir(desktop), "bin", "mine"), "a path is one from anywhere")

	// Written, they are what they were, beside what was there.
	target := filepath.Join(home, "new", "toolroom.yaml")
	added, kept, err := found.Write(target)
	require.NoError(t, err)
	require.Equal(t, names, added)
	require.Empty(t, kept)
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Contains(t, string(text), "API_KEY: SEKRIT")
	if runtime.GOOS != "windows" {
		info, err := os.Stat(target)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	write(t, target, "# mine\ntool_dirs: [t] # a note\n\nservers:\n  # the old one\n  web: {command: /old}\n")
	added, kept, err = found.Write(target)
	require.NoError(t, err)
	require.Equal(t, []string{"files", "grep", "mine", "here"}, added)
	require.Equal(t, []string{"web"}, kept)
	text, err = os.ReadFile(target)
	require.NoError(t, err)
	for _, want := range []string{"# mine", "# a note", "# the old one", "web: {command: /old}", "files:"} {
		require.Contains(t, string(text), want)
	}
	added, kept, err = found.Write(target)
	require.NoError(t, err)
	require.Empty(t, added)
	require.Len(t, kept, 5)
	for text, want := range map[string]string{"servers: [": "not YAML", "servers: [{name: a, command: b}]": "servers is a list", "sercers: {}": "did you mean servers?"} {
		write(t, target, text)
		_, _, err = found.Write(target)
		require.ErrorContains(t, err, want)
	}
	for _, empty := range []string{"", "# nothing\n", "servers:\n", "servers: {}\n"} {
		write(t, target, empty)
		added, _, err = found.Write(target)
		require.NoError(t, err, empty)
		require.Len(t, added, 5)
	}
	_, _, err = found.Write(filepath.Join(home, "x.json"))
	require.ErrorContains(t, err, "is not YAML")
	_, _, err = found.Write("")
	require.ErrorContains(t, err, "no directory")
}

// A path of {file:path} is one from anywhere, too.
func TestImportOfFiles(t *testing.T) {
	home := t.TempDir()
	getenv := env("HOME", home, "XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	file := config.Locations("opencode", runtime.GOOS, getenv)[0]
	write(t, file, `{"mcp": {"web": {"type": "remote", "url": "https://h/mcp", "headers": {"A": "{file:key}", "B": "{file:~/key}", "C": "{env:C}"}}}}`)
	found, err := config.Import("opencode", getenv)
	require.NoError(t, err)
	preview, err := found.Preview()
	require.NoError(t, err)
	require.Contains(t, preview, "A: '{file:"+filepath.Join(filepath.Dir(file), "key")+"}'")
	require.Contains(t, preview, "B: '{file:~/key}'")
	require.Contains(t, preview, "C: '{env:C}'")
}

// Concurrent imports into one file lose nothing.
func TestConcurrentImports(t *testing.T) {
	if !filelock.Advisory {
		t.Skip("the system has no locks of directories")
	}
	dir, all := t.TempDir(), sync.WaitGroup{}
	target := filepath.Join(dir, "new", "toolroom.yaml")
	for i := range 20 {
		source := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		write(t, source, fmt.Sprintf(`{"mcpServers":{"s%d":{"command":"npx"}}}`, i))
		all.Go(func() {
			found, err := config.Import(source, env())
			if assert.NoError(t, err) {
				_, _, err = found.Write(target)
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	for i := range 20 {
		require.Contains(t, string(text), fmt.Sprintf("  s%d:\n", i))
	}
	entries, err := os.ReadDir(filepath.Dir(target))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no other file is left")
}

// Concurrent changes of the trusted files lose nothing, such as a revocation.
func TestConcurrentTrust(t *testing.T) {
	if !filelock.Advisory {
		t.Skip("the system has no locks of directories")
	}
	state, all := filepath.Join(t.TempDir(), "state"), sync.WaitGroup{}
	for i := range 20 {
		all.Go(func() { assert.NoError(t, config.Trust(state, fmt.Sprintf("/c/%d.yaml", i), nil)) })
	}
	all.Wait()
	trusted := func() map[string]string {
		text, err := os.ReadFile(filepath.Join(state, "trusted.json"))
		require.NoError(t, err)
		known := map[string]string{}
		require.NoError(t, json.Unmarshal(text, &known))
		return known
	}
	require.Len(t, trusted(), 20)
	for i := range 20 {
		all.Go(func() { assert.NoError(t, config.Untrust(state, fmt.Sprintf("/c/%d.yaml", i))) })
	}
	all.Wait()
	require.Empty(t, trusted())
}

func TestImportOfNothing(t *testing.T) {
	home := t.TempDir()
	getenv := env("HOME", home)
	for _, product := range config.Products() {
		found, err := config.Import(product, getenv)
		require.NoError(t, err)
		require.Empty(t, found.Servers)
		require.NotEmpty(t, found.Searched)
	}
	// An editor's settings without servers are no mistake.
	write(t, config.Locations("gemini", runtime.GOOS, getenv)[0], `{"theme": "x"}`)
	found, err := config.Import("gemini", getenv)
	require.NoError(t, err)
	require.Empty(t, found.Servers)
	write(t, config.Locations("zed", runtime.GOOS, getenv)[0], `{"agent": {"dock": "right"}, /* no servers */}`)
	found, err = config.Import("zed", getenv)
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	require.Empty(t, found.Files)
	_, err = config.Import("emacs", getenv)
	require.ErrorContains(t, err, "emacs is neither a file nor one of claude, claude-desktop, claude-code, vscode, cursor, codex, gemini, opencode")
}
