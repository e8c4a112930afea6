package toolroom_test

import (
	"encoding/json"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// snippet is one server in a client's configuration.
type snippet struct {
	Command command  `json:"command"`
	Args    []string `json:"args"`
}

// command is a program, or a program and its first arguments as opencode
// writes them.
type command []string

func (c *command) UnmarshalJSON(text []byte) error {
	var program string
	if json.Unmarshal(text, &program) == nil {
		*c = command{program}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(c))
}

// blocks returns the fenced blocks of a manual in a language.
func blocks(t *testing.T, manual, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(manual)
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		found = append(found, string(block[1]))
	}
	require.NotEmpty(t, found)
	return found
}

// snippets reads the JSON blocks that configure a client.
func snippets(t *testing.T) []snippet {
	t.Helper()
	var found []snippet
	for _, block := range blocks(t, "README.md", "json") {
		var clients map[string]map[string]snippet // mcpServers or servers, then a name
		require.NoError(t, json.Unmarshal([]byte(block), &clients), "%s", block)
		for _, servers := range clients {
			for _, server := range servers {
				found = append(found, server)
			}
		}
	}
	// Clients with a command that adds a server: claude mcp add NAME -- COMMAND.
	for _, block := range blocks(t, "README.md", "sh") {
		for line := range strings.Lines(block) {
			if _, added, ok := strings.Cut(line, " -- "); ok {
				found = append(found, snippet{Command: strings.Fields(added)})
			}
		}
	}
	return found
}

// A snippet that is pasted with BIN and PROJECT filled in starts a server
// that lists its tools and reads from the project.
func TestReadmeSnippetsWork(t *testing.T) {
	bin, project := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(project, "hello.txt"), []byte("hello\n"), 0o600))
	for _, pkg := range []string{"./tools/ls", "./tools/glob", "./tools/view", "./host"} {
		built := mcpkittest.Build(t, pkg)
		// A copy, since the host looks for its siblings where it really is.
		content, err := os.ReadFile(built)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(bin, "mcp-"+filepath.Base(pkg)+filepath.Ext(built)), content, 0o700))
	}
	fill := strings.NewReplacer("BIN", bin, "PROJECT", project, "${workspaceFolder}", project)
	ran := 0
	for _, s := range snippets(t) {
		if strings.Contains(s.Command[0], `\`) {
			continue // a path of Windows; the rest is the same
		}
		line := append(slices.Clone(s.Command), s.Args...)
		for i, arg := range line {
			line[i] = fill.Replace(arg)
		}
		// Claude Code names the project in a variable.
		client := mcpkittest.StartWith(t, line[0], mcpkittest.Options{Args: line[1:], Dir: os.TempDir(), Env: append(os.Environ(), "CLAUDE_PROJECT_DIR="+project)})
		require.Contains(t, client.Call("view", map[string]any{"file_path": "hello.txt"}).Text, "hello")
		require.Zero(t, client.Close())
		ran++
	}
	require.GreaterOrEqual(t, ran, 8, "a snippet for each client")
}

// The configuration that README shows is valid.
func TestReadmeConfigurationIsRight(t *testing.T) {
	view := mcpkittest.Build(t, "./tools/view")
	shown := strings.Join(blocks(t, "README.md", "yaml"), "")
	for text, want := range map[string]string{
		shown: "toolroom.yaml: 1 server\n",
		strings.Replace(shown, "  # docs:", "  docs:", 1): "toolroom.yaml: 2 servers\n", // the line to uncomment
	} {
		dir := t.TempDir()
		fill := strings.NewReplacer("command: npx,", "command: "+view+",") // no package manager is needed
		file := filepath.Join(dir, "toolroom.yaml")
		require.NoError(t, os.WriteFile(file, []byte(fill.Replace(text)), 0o600))
		check := exec.CommandContext(t.Context(), mcpkittest.Build(t, "./host"), "config", "check", file)
		check.Env = append(os.Environ(), "DOCS_TOKEN=secret")
		out, err := check.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), want)
		require.Equal(t, strings.Contains(text, "tool_pins"), strings.Contains(string(out), "tool_pins"))
	}
}

// README is one page, and its links and pictures lead to files and headings of
// the repository.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 180, "a reference belongs in docs")
	links := regexp.MustCompile(`(?:\]\(|srcset="|src=")([^)"\s]+)`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(links), 20)
	for _, link := range links {
		if strings.HasPrefix(link[1], "https://") {
			continue
		}
		file, anchor, _ := strings.Cut(link[1], "#")
		page, err := os.Stat(filepath.FromSlash(file))
		require.NoError(t, err, "README links to it")
		if anchor == "" {
			continue
		}
		require.True(t, page.Mode().IsRegular(), link[1])
		content, err := os.ReadFile(filepath.FromSlash(file))
		require.NoError(t, err)
		var headings []string
		for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(content), -1) {
			headings = append(headings, strings.ReplaceAll(strings.ToLower(h[1]), " ", "-"))
		}
		require.Contains(t, headings, anchor, "%s has no such heading", file)
	}
}

// Each command of mcp-host and each target of make that README names exists.
func TestReadmeCommandsExist(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	host := mcpkittest.Build(t, "./host")
	commands := regexp.MustCompile("`(?:bin/)?mcp-host ([a-z]+(?: [a-z]+)?)").FindAllSubmatch(text, -1)
	require.Greater(t, len(commands), 5)
	for _, found := range commands {
		command := strings.Fields(string(found[1]))
		if command[0] == "call" { // a tool's name is next
			command = command[:1]
		}
		out, err := exec.CommandContext(t.Context(), host, append(slices.Clone(command), "--help")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "\n  mcp-host "+strings.Join(command, " ")) // its usage
	}
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	targets := regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllSubmatch(text, -1)
	require.Greater(t, len(targets), 3)
	for _, target := range targets {
		require.Regexp(t, `(?m)^`+string(target[1])+`:.*## `, string(makefile))
	}
}

// README's policy allows the command that it names, and asks about that
// command with another one behind it.
func TestReadmePolicyAsks(t *testing.T) {
	view, dir := mcpkittest.Build(t, "./tools/view"), t.TempDir()
	fill := strings.NewReplacer("command: npx,", "command: "+view+",")
	file := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(file, []byte(fill.Replace(strings.Join(blocks(t, "README.md", "yaml"), ""))), 0o600))
	extension := filepath.Ext(view)
	host := filepath.Join(dir, "mcp-host"+extension)
	for _, source := range []string{"./host", "./tools/bash"} {
		content, err := os.ReadFile(mcpkittest.Build(t, source))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mcp-"+filepath.Base(source)+extension), content, 0o700)) //nolint:gosec // programs
	}
	for command, asks := range map[string]bool{"git status": false, "git status; echo more": true, "rm -r .": true} {
		project := t.TempDir()
		cmd := exec.CommandContext(t.Context(), host, "--config", file, "--state", filepath.Join(dir, "state"), "--root", project, "call", "bash", "command="+command)
		cmd.Dir = project
		out, _ := cmd.CombinedOutput() // git fails here, and bash where it cannot confine
		require.Equal(t, asks, strings.Contains(string(out), "requires approval"), "%s\n%s", command, out)
	}
}

// The tests that SECURITY.md and README name exist.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text = append(text, readme...)
	names := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllSubmatch(text, -1)
	require.NotEmpty(t, names)
	var tests []string
	for _, file := range goFiles(t) {
		for _, decl := range file.tree.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && file.test && f.Recv == nil {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	for _, name := range names {
		require.Contains(t, tests, string(name[1]), "SECURITY.md or README.md names a test that does not exist")
	}
}
