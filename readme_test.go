package toolroom_test

import (
	"encoding/json"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// snippet is a server in a client's configuration.
type snippet struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// blocks are what a manual shows in a language.
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
		args := make([]string, len(s.Args))
		for i, arg := range s.Args {
			args[i] = fill.Replace(arg)
		}
		client := mcpkittest.StartWith(t, fill.Replace(s.Command), mcpkittest.Options{Args: args, Dir: os.TempDir()})
		require.Contains(t, client.Call("view", map[string]any{"file_path": "hello.txt"}).Text, "hello")
		require.Zero(t, client.Close())
		ran++
	}
	require.Positive(t, ran)
}

// What README shows of toolroom.yaml is one.
func TestReadmeConfigurationIsRight(t *testing.T) {
	view := mcpkittest.Build(t, "./tools/view")
	for text, want := range map[string]string{
		strings.Join(blocks(t, "README.md", "yaml"), ""): "toolroom.yaml: 2 servers",
	} {
		dir := t.TempDir()
		fill := strings.NewReplacer("BIN/mcp-view", view, "BIN/mcp-bash", view, "command: sh,", "command: "+view+",", "PROJECT", dir)
		file := filepath.Join(dir, "toolroom.yaml")
		require.NoError(t, os.WriteFile(file, []byte(fill.Replace(text)), 0o600))
		out, err := exec.CommandContext(t.Context(), mcpkittest.Build(t, "./host"), "config", "check", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), want)
		require.Equal(t, strings.Contains(text, "tool_pins"), strings.Contains(string(out), "tool_pins"))
	}
}

// SECURITY.md names the tests that attack each promise.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	require.NoError(t, err)
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
		require.Contains(t, tests, string(name[1]), "SECURITY.md names a test that does not exist")
	}
}
