package install_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/install"
)

var bg = context.Background()

// The paths come from the pages that Clients lists.
func TestConfigurationFilesOfClients(t *testing.T) {
	files := func(system, home string, env map[string]string) map[string]string {
		at := install.Environment{System: system, Dir: "/p", Getenv: func(name string) string {
			if name == "HOME" || name == "USERPROFILE" {
				return home
			}
			return env[name]
		}}
		all := map[string]string{}
		for _, c := range install.Clients() {
			file, ok := c.File(install.User, at)
			require.True(t, ok, c.ID)
			all[c.ID] = filepath.ToSlash(file)
		}
		return all
	}
	require.Equal(t, map[string]string{
		"claude-desktop": "/h/.config/Claude/claude_desktop_config.json", "claude-code": "/h/.claude.json", "codex": "/h/.codex/config.toml",
		"gemini": "/h/.gemini/settings.json", "vscode": "/h/.config/Code/User/mcp.json", "cursor": "/h/.cursor/mcp.json",
		"windsurf": "/h/.codeium/windsurf/mcp_config.json", "opencode": "/h/.config/opencode/opencode.json",
		"zed": "/h/.config/zed/settings.json", "goose": "/h/.config/goose/config.yaml",
	}, files("linux", "/h", nil))
	require.Equal(t, map[string]string{
		"claude-desktop": "/h/Library/Application Support/Claude/claude_desktop_config.json", "claude-code": "/h/.claude.json", "codex": "/h/.codex/config.toml",
		"gemini": "/h/.gemini/settings.json", "vscode": "/h/Library/Application Support/Code/User/mcp.json", "cursor": "/h/.cursor/mcp.json",
		"windsurf": "/h/.codeium/windsurf/mcp_config.json", "opencode": "/h/.config/opencode/opencode.json",
		"zed": "/h/.config/zed/settings.json", "goose": "/h/.config/goose/config.yaml",
	}, files("darwin", "/h", nil))
	windows := files("windows", "/h", map[string]string{"APPDATA": "/h/AppData/Roaming"})
	require.Equal(t, "/h/AppData/Roaming/Claude/claude_desktop_config.json", windows["claude-desktop"])
	require.Equal(t, "/h/AppData/Roaming/Block/goose/config/config.yaml", windows["goose"])
	moved := files("linux", "/h", map[string]string{"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d", "XDG_CONFIG_HOME": "/x"})
	require.Equal(t, "/c/config.toml", moved["codex"])
	require.Equal(t, "/d/.claude.json", moved["claude-code"])
	require.Equal(t, "/x/zed/settings.json", moved["zed"])
}

func placeIn(t *testing.T) (home string, at install.Environment) {
	t.Setenv("PATH", t.TempDir()) // no claude
	home = t.TempDir()
	project := t.TempDir()
	return home, install.Environment{System: "linux", Dir: project, Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}
}

var hostServer = install.Server{Name: "toolroom", Command: "/opt/mcp-host", Args: []string{"stdio", "--root", "/p"}}

// Every client, in both scopes: added, found, not added twice, and removed so
// that nothing is left.
func TestAddAndRemoveLeavesNothing(t *testing.T) {
	for _, c := range install.Clients() {
		for _, scope := range []install.Scope{install.User, install.Project} {
			home, at := placeIn(t)
			state := filepath.Join(home, ".local/state/toolroom")
			change, err := install.Plan(c, scope, at, []install.Server{hostServer}, false)
			if _, ok := c.File(scope, at); !ok {
				require.ErrorContains(t, err, "no configuration for the scope project", c.ID)
				continue
			}
			require.NoError(t, err, c.ID)
			require.Equal(t, []string{"toolroom"}, change.Names)
			require.NoError(t, change.Apply(bg, state))
			again, err := install.Plan(c, scope, at, []install.Server{hostServer}, false)
			require.NoError(t, err)
			require.True(t, again.IsEmpty(), c.ID)
			found, err := install.Find(c, scope, at)
			require.NoError(t, err)
			require.Len(t, found, 1, c.ID)
			require.Equal(t, "/opt/mcp-host", found[0].Program, c.ID)
			removal, err := install.PlanRemoval(c, scope, at, state)
			require.NoError(t, err)
			require.NoError(t, removal.Undo(bg, state))
			for _, dir := range []string{home, at.Dir} {
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left, "%s %s", c.ID, scope)
			}
		}
	}
}

func TestRestoreIsExactUnlessTheUserChangedTheFile(t *testing.T) {
	home, at := placeIn(t)
	state := filepath.Join(home, "state")
	cursor, _ := install.ByID("cursor")
	file := filepath.Join(home, ".cursor/mcp.json")
	before := "\ufeff{ \"mcpServers\" : { } , // mine\r\n}"
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(before), 0o640))
	add := func(args ...string) {
		t.Helper()
		s := hostServer
		s.Args = args
		change, err := install.Plan(cursor, install.User, at, []install.Server{s}, false)
		require.NoError(t, err)
		require.NoError(t, change.Apply(bg, state))
	}
	remove := func() {
		t.Helper()
		change, err := install.PlanRemoval(cursor, install.User, at, state)
		require.NoError(t, err)
		require.NoError(t, change.Undo(bg, state))
	}
	read := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	add("stdio")
	require.Equal(t, before, read(file+install.BackupEnding))
	add("stdio", "--root", "/q") // the copy stays that of the user
	require.Equal(t, before, read(file+install.BackupEnding))
	remove()
	require.Equal(t, before, read(file))
	require.NoFileExists(t, file+install.BackupEnding)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	require.NoDirExists(t, state)

	add("stdio")
	changed := read(file) + "// later\n"
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o640))
	remove()
	require.Contains(t, read(file), "// later")
	require.NotContains(t, read(file), "toolroom")
}

func TestEntriesOfOthersAndUsersMembersStay(t *testing.T) {
	home, at := placeIn(t)
	cursor, _ := install.ByID("cursor")
	codex, _ := install.ByID("codex")
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	write(".cursor/mcp.json", `{"mcpServers": {"toolroom": {"command": "npx", "args": ["other"]}}}`)
	_, err := install.Plan(cursor, install.User, at, []install.Server{hostServer}, false)
	var conflict *install.ConflictError
	require.ErrorAs(t, err, &conflict)
	change, err := install.Plan(cursor, install.User, at, []install.Server{hostServer}, true)
	require.NoError(t, err)
	require.JSONEq(t, `{"mcpServers": {"toolroom": {"command": "/opt/mcp-host", "args": ["stdio", "--root", "/p"]}}}`, string(change.After))

	write(".cursor/mcp.json", `{"mcpServers": {"toolroom": {"command": "/old/mcp-host", "env": {"A": "1", "B": "x y"}, "timeout": 5}}}`)
	change, err = install.Plan(cursor, install.User, at, []install.Server{hostServer}, false)
	require.NoError(t, err)
	require.JSONEq(t, `{"mcpServers": {"toolroom": {"command": "/opt/mcp-host", "args": ["stdio", "--root", "/p"], "env": {"A": "1", "B": "x y"}, "timeout": 5}}}`, string(change.After))

	write(".codex/config.toml", "[mcp_servers.toolroom]\ncommand = '/old/mcp-host'\nstartup_timeout_sec = 1.5\n[mcp_servers.toolroom.env]\n\"A.B\" = '1'\n")
	change, err = install.Plan(codex, install.User, at, []install.Server{hostServer}, false)
	require.NoError(t, err)
	require.Equal(t, "[mcp_servers.toolroom]\ncommand = \"/opt/mcp-host\"\nargs = [\"stdio\", \"--root\", \"/p\"]\nenv = {\"A.B\" = \"1\"}\nstartup_timeout_sec = 1.5\n", string(change.After))
}

func TestAFileThatChangedMeanwhileIsNotWritten(t *testing.T) {
	home, at := placeIn(t)
	cursor, _ := install.ByID("cursor")
	change, err := install.Plan(cursor, install.User, at, []install.Server{hostServer}, false)
	require.NoError(t, err)
	file := filepath.Join(home, ".cursor/mcp.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	require.ErrorContains(t, change.Apply(bg, filepath.Join(home, "state")), "try again")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))
}

// A link to a file in a dotfiles repository stays a link.
func TestLinksAreFollowed(t *testing.T) {
	home, at := placeIn(t)
	gemini, _ := install.ByID("gemini")
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".gemini"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "dot.json"), []byte("{}\n"), 0o600))
	if err := os.Symlink("../dot.json", filepath.Join(home, ".gemini/settings.json")); err != nil {
		t.Skip(err)
	}
	change, err := install.Plan(gemini, install.User, at, []install.Server{hostServer}, false)
	require.NoError(t, err)
	require.NoError(t, change.Apply(bg, filepath.Join(home, "state")))
	target, err := os.Readlink(filepath.Join(home, ".gemini/settings.json"))
	require.NoError(t, err)
	require.Equal(t, "../dot.json", target)
	text, err := os.ReadFile(filepath.Join(home, "dot.json"))
	require.NoError(t, err)
	require.Contains(t, string(text), "/opt/mcp-host")
}

// A client's own program makes the change where it is installed.
func TestTheClientsOwnProgramIsCalled(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("the program here is a shell script")
	}
	home, at := placeIn(t)
	bin := t.TempDir()
	script := "#!" + shell + "\necho \"$*\" >> \"$LOG\"\ncase $2 in add-json) echo \"{\\\"mcpServers\\\": {\\\"$5\\\": $6}}\" > \"$FILE\";; *) echo '{}' > \"$FILE\";; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(script), 0o755))
	t.Setenv("PATH", bin)
	t.Setenv("LOG", filepath.Join(home, "log"))
	t.Setenv("FILE", filepath.Join(home, ".claude.json"))
	claude, _ := install.ByID("claude-code")
	state := filepath.Join(home, "state")
	change, err := install.Plan(claude, install.User, at, []install.Server{hostServer}, false)
	require.NoError(t, err)
	require.NoError(t, change.Apply(bg, state))
	found, err := install.Find(claude, install.User, at)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), append(change.After, '\n'), 0o600)) // as a session does
	removal, err := install.PlanRemoval(claude, install.User, at, state)
	require.NoError(t, err)
	require.NoError(t, removal.Undo(bg, state))
	log, err := os.ReadFile(filepath.Join(home, "log"))
	require.NoError(t, err)
	require.Equal(t, `mcp add-json --scope user toolroom {"type": "stdio", "command": "/opt/mcp-host", "args": ["stdio", "--root", "/p"]}
mcp remove --scope user toolroom
`, string(log))
}
