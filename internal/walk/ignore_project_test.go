package walk_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// TestProjectWithoutRepository: a copy of a project without .git is listed like
// the repository.
func TestProjectWithoutRepository(t *testing.T) {
	root := t.TempDir()
	files{
		".gitignore": "top\n", "top": "", "plain/.gitignore": "x\n", "plain/x": "",
		"web/.gitignore": "node_modules/\n/build\n", "web/package.json": "{}", "web/node_modules/a/index.js": "", "web/build/out.js": "",
		"web/src/main.js": "", "web/src/build/kept.js": "", "web/src/.gitignore": "*.tmp\n", "web/src/a.tmp": "",
		"repo/.git/HEAD": "", "repo/sub/.gitignore": "!b\n", "repo/sub/go.mod": "", "repo/.gitignore": "b\n", "repo/sub/b": "", "repo/b": "",
	}.write(t, root)
	list := func(root, sub string) []string {
		found, _ := collect(t, start(t, root, sub, walk.Options{}), regular)
		return found
	}
	all := []string{"plain/x", "repo/sub/b", "repo/sub/go.mod", "top", "web/package.json", "web/src/build/kept.js", "web/src/main.js"}
	require.Equal(t, all, list(root, "."))
	require.Equal(t, []string{"build/kept.js", "main.js"}, list(root, "web/src"))
	require.Equal(t, []string{"build/kept.js", "main.js"}, list(filepath.Join(root, "web"), "src"))
	require.Equal(t, []string{"a.tmp", "build/kept.js", "main.js"}, list(filepath.Join(root, "web", "src"), "."), "a project above the root does not count")
	found, report := collect(t, start(t, root, "web", walk.Options{NoIgnore: true}), regular)
	require.Contains(t, found, "node_modules/a/index.js")
	require.Zero(t, report.Ignored)

	both, err := sandbox.New(sandbox.Config{Roots: []string{filepath.Join(root, "web", "src"), filepath.Join(root, "web")}}).FS(t.Context())
	require.NoError(t, err)
	found, _ = collect(t, startIn(t, both, filepath.Join(root, "web", "src"), walk.Options{}), regular)
	require.Equal(t, []string{"build/kept.js", "main.js"}, found, "the outermost root counts")
}
