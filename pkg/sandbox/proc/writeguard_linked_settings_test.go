//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestProjectSettingsBehindLinks: settings that are reached through a link are
// reverted, too, whether the link is a command's or the user's.
func TestProjectSettingsBehindLinks(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for name, c := range map[string]struct {
			before, script string
			file           string // the settings
			want           string // their content afterwards; "": there are none
		}{
			"a directory replaced by a link":         {"mkdir -p p/b", `mkdir -p q/.vscode; echo evil > q/.vscode/tasks.json; rm -r p; ln -s q p`, "p/.vscode/tasks.json", ""},
			"below a directory that is a link":       {"mkdir -p p/b", `mkdir -p q/b; echo evil > q/b/.envrc; rm -r p; ln -s q p`, "p/b/.envrc", ""},
			"a link in place of .config":             {"", `mkdir -p c/mise; echo evil > c/mise/config.toml; ln -s c .config`, ".config/mise/config.toml", ""},
			"a link in place of .github":             {"mkdir p", `mkdir -p g/hooks; echo evil > g/hooks/x.json; ln -s ../g p/.github`, "p/.github/hooks/x.json", ""},
			"a link made before its directory":       {"", `ln -s g .github; mkdir -p g/hooks; echo evil > g/hooks/x.json`, ".github/hooks/x.json", ""},
			"the user's link to a file":              {"mkdir conf; echo mine > conf/mcp.json; ln -s conf/mcp.json .mcp.json", `echo evil > n; mv n conf/mcp.json`, ".mcp.json", "mine\n"},
			"the user's link to a directory":         {"mkdir -p shared/claude; echo mine > shared/claude/settings.json; ln -s shared/claude .claude", `echo evil > n; mv n shared/claude/settings.json`, ".claude/settings.json", "mine\n"},
			"a new file behind the user's link":      {"mkdir -p cfg; ln -s cfg .vscode", `echo evil > cfg/tasks.json`, ".vscode/tasks.json", ""},
			"the user's link to nothing":             {"mkdir env; ln -s env/rc .envrc", `echo evil > env/rc`, ".envrc", ""},
			"two links in a row":                     {"mkdir -p p/b/c", `mkdir -p n1 n2/.vscode; echo evil > n2/.vscode/tasks.json; mv p old; ln -s n1 p; ln -s ../n2 n1/b`, "p/b/.vscode/tasks.json", ""},
			"three links in a row":                   {"mkdir -p p/b/c", `mkdir -p n1 n2 n3; echo evil > n3/.mcp.json; mv p old; ln -s n1 p; ln -s ../n2 n1/b; ln -s ../n3 n2/c`, "p/b/c/.mcp.json", ""},
			"a link to a package":                    {"mkdir -p p/b/c", `mkdir -p node_modules/b/.vscode; echo evil > node_modules/b/.vscode/tasks.json; mv p/b old; ln -s ../node_modules/b p/b`, "p/b/.vscode/tasks.json", ""},
			"a link through a package":               {"mkdir -p p/b/c", `mkdir -p node_modules/x y/.vscode; echo evil > y/.vscode/tasks.json; mv p old; ln -s node_modules/x p; ln -s ../../y node_modules/x/b`, "p/b/.vscode/tasks.json", ""},
			"the user's link that leads elsewhere":   {"mkdir -p p lib; ln -s ../lib p/b", `mkdir -p n/.vscode; echo evil > n/.vscode/tasks.json; ln -sfn ../n p/b`, "p/b/.vscode/tasks.json", ""},
			"the user's link to a new directory":     {"mkdir -p p; ln -s ../lib p/b", `mkdir -p lib/.vscode; echo evil > lib/.vscode/tasks.json`, "p/b/.vscode/tasks.json", ""},
			"a new link to a directory above itself": {"mkdir -p p/b", `mkdir n; ln -s .. n/l; ln -s . n/m; mkdir n/.vscode; echo evil > n/.vscode/tasks.json; rm -r p; ln -s n p`, "p/.vscode/tasks.json", ""},
			"a link to the user's own file":          {"mkdir -p p; echo mine > f", `ln -s f l; ln -s ../f p/l`, "p/l", "mine\n"},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t)
				p.user(c.before + "\n:")
				r := p.runner(level)
				run(t, r, p.command("true"))
				_, out := run(t, r, p.command(c.script))
				content, err := os.ReadFile(filepath.Join(p.root, c.file))
				require.Equal(t, c.want, string(content), out)
				require.Equal(t, c.want == "", err != nil)
			})
		}
	}
}

// TestSettingsMovedByLinksInTwoCommands: settings that one command makes in a directory of
// its own get to a directory of the user by no link of a later command.
func TestSettingsMovedByLinksInTwoCommands(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for name, c := range map[string]struct {
			before, first, second string
			file                  string // the settings
			want                  string // their content afterwards; "": there are none
		}{
			"a directory replaced by a link":       {"mkdir p", `mkdir n; echo evil > n/.envrc`, `mv p old; ln -s n p`, "p/.envrc", ""},
			"settings of an editor":                {"mkdir p", `mkdir -p n/.vscode; echo evil > n/.vscode/tasks.json`, `mv p old; ln -s n p`, "p/.vscode/tasks.json", ""},
			"below a directory that is a link":     {"mkdir -p p/b", `mkdir -p n/b; echo evil > n/b/.mcp.json`, `mv p old; ln -s n p`, "p/b/.mcp.json", ""},
			"two links in a row":                   {"mkdir -p p/b", `mkdir -p m n; echo evil > n/.envrc; ln -s ../n m/b`, `mv p old; ln -s m p`, "p/b/.envrc", ""},
			"the user's link that leads elsewhere": {"mkdir l; ln -s l p", `mkdir n; echo evil > n/.envrc`, `ln -sfn n p`, "p/.envrc", ""},
			"the user's link to nothing":           {"ln -s l p", `mkdir n; echo evil > n/.envrc`, `ln -s n l`, "p/.envrc", ""},
			"settings that were there":             {"mkdir p; echo mine > p/.envrc", `mkdir n; cp p/.envrc n`, `mv p old; ln -s n p`, "p/.envrc", "mine\n"},
			"a directory that was moved":           {"mkdir p; echo mine > p/.envrc", `true`, `mv p old; ln -s old p`, "p/.envrc", "mine\n"},
			"a new name":                           {"", `mkdir n; echo theirs > n/.envrc`, `ln -s n p`, "p/.envrc", "theirs\n"},
			"no settings":                          {"mkdir p", `mkdir n; echo x > n/f`, `mv p old; ln -s n p`, "p/f", "x\n"},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t)
				p.user(c.before + "\n:")
				r := p.runner(level)
				run(t, r, p.command("true"))
				run(t, r, p.command(c.first))
				_, out := run(t, r, p.command(c.second))
				content, err := os.ReadFile(filepath.Join(p.root, c.file))
				require.Equal(t, c.want, string(content), out)
				require.Equal(t, c.want == "", err != nil)
			})
		}
	}
}
