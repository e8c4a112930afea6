package projectfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
)

func TestDepth(t *testing.T) {
	for path, want := range map[string]int{
		"x/.vscode": 1, "x/.VSCode": 1, "x/.mcp.json": 1, "x/mise.ci.toml": 1, "x/a.code-workspace": 1, "x/P.sublime-project": 1,
		".config/mise": 2, ".github/hooks": 2, ".hg/hgrc": 2, ".sl/config": 2, ".hg/sharedpath": 2, ".HG/SharedPath": 2, ".sl/sharedpath": 2, ".pijul/config": 2, ".lsp/config.edn": 2,
		"x/_vimrc": 1, "x/_exrc": 1, "x/.RData": 1, "x/buildServer.json": 1, "x/hie.yaml": 1, "x/A.ipr": 1, "x/A.iws": 1, "x/.lazygit.yml": 1, "x/.shadowenv.d": 1,
		"x/sharedpath": 0, ".lsp/.cache": 0, ".pijul/pristine": 0, ".clinerules/hooks": 2, "mise/config.toml": 2, "mise/config.local.toml": 2, "x/.pdbrc": 1, "x/.RENVIRON": 1,
		".vscode/tasks.json": 0, "x/main.go": 0, "x/config.toml": 0, ".github/workflows": 0, "x/mise": 0, "x/": 0,
	} {
		dir, name, _ := strings.Cut(path, "/")
		require.Equal(t, want, projectfile.SettingsDepth(dir, name), path)
		if want == 2 {
			require.True(t, projectfile.HoldsParentSettings(dir), path)
		}
	}
	require.False(t, projectfile.HoldsParentSettings(".vscode"))
}

func TestThreeUp(t *testing.T) {
	for path, want := range map[string]bool{".jj/repo/config.toml": true, "_darcs/prefs/defaults": true, "mise/conf.d/x.toml": true, "mise/conf.d/x.txt": false, ".jj/repo/store": false, "x/repo/config.toml": false, "prefs/_darcs/defaults": false} {
		parts := strings.Split(path, "/")
		require.Equal(t, want, projectfile.IsSettingsThreeUp([2]string(parts[:2]), parts[2]), path)
		require.Equal(t, want, projectfile.IsSettingsPath(parts[0], parts[1:]), path)
	}
}

func TestMatch(t *testing.T) {
	for _, name := range projectfile.SettingsDirs() {
		require.True(t, projectfile.IsSettingsPath(name, nil), name)
		require.True(t, projectfile.IsSettingsPath(strings.ToUpper(name), []string{"a", "b"}), name)
		require.Equal(t, 1, projectfile.SettingsDepth("x", name), name)
	}
	for _, name := range projectfile.SettingsFiles() {
		require.True(t, projectfile.IsSettingsPath(strings.ToUpper(name), nil), name)
		require.False(t, projectfile.IsSettingsPath(name, []string{"below"}), name)
		require.Equal(t, 1, projectfile.SettingsDepth("x", name), name)
	}
}
