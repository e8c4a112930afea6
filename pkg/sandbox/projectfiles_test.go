package sandbox_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Files by which an editor, an agent or a shell starts programs are not
// written: at any depth, in any letter case, existing or not.
func TestProjectFilesAreProtected(t *testing.T) {
	names := []string{
		".vscode/mcp.json", ".vscode/settings.json", ".vscode/tasks.json", ".vscode/launch.json", ".devcontainer/devcontainer.json",
		".devcontainer/x/devcontainer.json", ".cursor/hooks.json", ".claude/commands/x.md", ".claude/agents/x.md", ".claude/hooks/x.sh",
		".claude/skills/s/SKILL.md", ".husky/pre-commit", ".husky/_/h", ".idea/workspace.xml", ".idea/runConfigurations/x.xml", ".zed/tasks.json",
		".windsurf/hooks.json", ".kiro/hooks/x.kiro.hook", ".kiro/settings/mcp.json", ".roo/mcp.json", ".continue/mcpServers/x.yaml",
		".opencode/plugin/x.js", ".amazonq/mcp.json", ".amazonq/cli-agents/x.json", "my.code-workspace", ".code-workspace",
		".hg/hgrc", ".hg/sharedpath", ".sl/config", ".clinerules/hooks/x", "p.sublime-project", ".github/hooks/x.json", ".mise/config.toml", ".config/mise/config.toml", ".config/mise.toml", "mise/config.toml", "mise.ci.toml", ".mise.ci.toml", "mise/config.local.toml", ".jj/repo/config.toml", "_darcs/prefs/defaults",
		".git/modules/objects/hooks/post-checkout", ".git/modules/logs/hooks/x", ".git/modules/a/refs/hooks/x", "x.git/modules/refs/hooks/x",
	}
	for _, dir := range projectfile.SettingsDirs() {
		names = append(names, dir, dir+"/x", dir+"/a/b")
	}
	names = append(names, projectfile.SettingsFiles()...)
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.write(t, "root/.vscode/settings.json", "{}")
		tr.write(t, "root/deep/er/.idea/workspace.xml", "<x/>")
		tr.link(t, ".vscode", "root/plain")
		fs := open(t, box, tr.root)
		for _, name := range append([]string{"plain/settings.json", "plain/new"}, names...) {
			for _, name := range []string{name, "deep/er/" + name} {
				if strings.HasPrefix(name, "deep/er/plain") {
					continue
				}
				_, err := put(fs, name, "x", sandbox.ReplaceOptions{MakeParents: true})
				requireCode(t, toolerr.DeniedPath, err)
				require.ErrorContains(t, err, "--allow-write", name)
			}
			if !strings.HasPrefix(name, "plain/") {
				require.NotEmpty(t, fs.Protected(filepath.Join(tr.root, strings.ToUpper(name))), name)
			}
		}
		require.NoDirExists(t, filepath.Join(tr.root, ".cursor"))
		allowed := box(sandbox.Config{Roots: []string{tr.root}, AllowWrites: []string{".vscode"}})
		f, err := allowed.FS(t.Context())
		require.NoError(t, err)
		_, err = put(f, ".vscode/settings.json", "{ }", sandbox.ReplaceOptions{})
		require.NoError(t, err)
	})
}
