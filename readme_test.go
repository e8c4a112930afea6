package toolroom_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// snippet is what every client's configuration comes down to.
type snippet struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// snippets reads the JSON blocks of README that configure a client.
func snippets(t *testing.T) []snippet {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var found []snippet
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(readme, -1) {
		var clients map[string]map[string]snippet // mcpServers or servers, then a name
		require.NoError(t, json.Unmarshal(block[1], &clients), "%s", block[1])
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
		if strings.Contains(s.Command, `\`) {
			continue // a Windows path, the same otherwise
		}
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
