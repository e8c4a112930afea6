// Package projectfile knows the files of a project by which an editor, an agent
// or a shell runs programs once somebody opens or enters the project. It goes by
// names and opens no files.
package projectfile

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// settingsDirs lists the directories of a project whose files make an editor,
// an agent or a shell run a program once somebody opens or enters the project.
// They are protected with everything below, existing or not.
var settingsDirs = []string{
	".agents",               // skills that run shell lines, hooks
	".amazonq",              // mcp.json starts servers, cli-agents/*.json have hooks
	".amp",                  // settings.json starts servers
	".augment",              // settings.json starts servers
	".claude",               // settings, hooks, skills and commands that run shell lines
	".codebuddy",            // as .claude
	".codex",                // config.toml starts servers and a notify program
	".continue",             // mcpServers/*.yaml starts servers
	".copilot",              // starts servers, hooks
	".cursor",               // mcp.json starts servers, hooks.json runs commands
	".devcontainer",         // devcontainer.json: initializeCommand runs on the host
	".eca",                  // config.json starts servers
	".externalToolBuilders", // Eclipse runs them when it builds
	".factory",              // mcp.json starts servers, settings.json has hooks
	".fleet",                // run configurations
	".gemini",               // settings.json starts servers and has hooks
	".grok",                 // settings.json starts servers
	".helix",                // languages.toml starts language servers and formatters
	".husky",                // git hooks, by core.hooksPath
	".idea",                 // run configurations, startup tasks, file watchers
	".iflow",                // as .gemini
	".junie",                // mcp/mcp.json starts servers
	".kilo",                 // kilo.json starts servers
	".kilocode",             // mcp.json starts servers
	".kiro",                 // hooks run commands, settings/mcp.json starts servers
	".letta",                // settings.json has hooks
	".mcp",                  // starts servers
	".mise",                 // config.toml: hooks and templates run commands on cd
	".nlsp-settings",        // settings of language servers, which name programs
	".nova",                 // tasks and settings of language servers
	".opencode",             // plugins are run, opencode.json starts servers
	".openhands",            // setup.sh runs at the start
	".pi",                   // extensions are run
	".qoder",                // settings.json has hooks
	".qwen",                 // settings.json starts servers
	".refact",               // integrations.d starts servers
	".roo",                  // mcp.json starts servers
	".shadowenv.d",          // Shadowenv sets variables on cd; it trusts the directory, not the content
	".superset",             // config.json has scripts that run in new work trees
	".tabnine",              // starts servers
	".theia",                // as .vscode
	".trae",                 // mcp.json starts servers
	".vibe",                 // config.toml starts servers
	".vim",                  // coc-settings.json starts language servers
	".vs",                   // mcp.json starts servers, tasks
	".vscode",               // tasks run on folderOpen, mcp.json starts servers
	".windsurf",             // hooks.json runs commands
	".zed",                  // settings.json starts language and context servers
}

// settingsFiles lists the files by which an editor, an agent or a shell runs a
// program once somebody opens or enters the project, in any directory of it.
var settingsFiles = []string{
	".aider.conf.yaml",   // as .aider.conf.yml
	".aider.conf.yml",    // lint-cmd and test-cmd run after each edit
	".autoenv.zsh",       // zsh-autoenv runs it on cd
	".autoenv_leave.zsh", // as .autoenv.zsh
	".byebugrc",          // byebug runs it
	".crush.json",        // as crush.json
	".devcontainer.json", // as the directory
	".dir-locals-2.el",   // as .dir-locals.el
	".dir-locals.el",     // Emacs evaluates eval forms
	".envrc",             // direnv runs it on cd
	".erlang",            // erl runs it
	".exrc",              // vi, vim and nvim run it with the option exrc
	".gdbinit",           // gdb runs it if the user lets it
	".ghci",              // ghci runs it
	".ghcid",             // ghcid runs its command
	".gvimrc",            // as .vimrc
	".hie-bios",          // haskell-language-server runs it
	".iex.exs",           // iex runs it
	".irbrc",             // irb runs it
	".kateproject",       // starts language servers
	".lazy.lua",          // lazy.nvim runs it
	".lazygit.yml",       // commands and pager of lazygit
	".lite_project.lua",  // Lite XL runs it
	".lldbinit",          // as .gdbinit
	".local.vimrc",       // the plugin localrc runs it
	".lvimrc",            // the plugin localvimrc runs it
	".mcp.json",          // starts servers
	".mise.local.toml",   // as mise.toml
	".mise.toml",         // as mise.toml
	".neoconf.json",      // as .nlsp-settings
	".nvim.lua",          // as .exrc
	".nvimrc",            // as .exrc
	".ocamlinit",         // ocaml and utop run it
	".octaverc",          // octave runs it
	".opencode.json",     // as opencode.json
	".opencode.jsonc",    // as opencode.json
	".pdbrc",             // pdb runs it
	".perldb",            // perl -d runs it
	".pryrc",             // pry runs it
	".psysh.php",         // psysh runs it
	".rdata",             // R loads it, and runs a function .First in it
	".renviron",          // R and RStudio read it; it can name the profile that they run
	".reviewboardrc",     // rbt runs it
	".rprofile",          // R and RStudio run it
	".rtx.toml",          // as mise.toml, for older versions
	".vimrc",             // vim runs it with the option exrc
	".ycm_extra_conf.py", // YouCompleteMe runs it if the user lets it
	"$irbrc",             // as .irbrc
	"_exrc",              // as .exrc
	"_gvimrc",            // as .gvimrc
	"_irbrc",             // as .irbrc
	"_vimrc",             // as .vimrc
	"buildserver.json",   // sourcekit-lsp starts the server
	"conductor.json",     // Conductor runs its scripts in new work trees
	"crush.json",         // starts MCP and language servers
	"gptme.toml",         // gptme runs its context_cmd at the start
	"hie.yaml",           // haskell-language-server runs the program of a cradle
	"irb.rc",             // as .irbrc
	"kilo.json",          // starts servers
	"kilo.jsonc",         // as kilo.json
	"mise.local.toml",    // as mise.toml
	"mise.toml",          // hooks and templates run commands on cd
	"opencode.json",      // starts servers, formatters and plugins
	"opencode.jsonc",     // as opencode.json
}

// SettingsDirs returns the names of the directories that hold settings by which
// programs run, at any depth of a project. IsSettingsPath also knows patterns and names
// of several components, which are not in the list.
func SettingsDirs() []string { return slices.Clone(settingsDirs) }

// SettingsFiles returns the names of the files with settings by which programs run, at
// any depth of a project. IsSettingsPath also knows patterns and names of several
// components, which are not in the list.
func SettingsFiles() []string { return slices.Clone(settingsFiles) }

// SettingsDepth returns how many levels above an entry of a directory the project is
// whose settings the entry holds. dir is the directory's own name, name the entry's.
// The depth is 1 if the settings belong to dir, 2 if they belong to the directory above
// it (.config/mise, .github/hooks), and 0 if the entry holds no settings by which an
// editor, agent or shell runs programs.
func SettingsDepth(dir, name string) (depth int) {
	switch {
	case !mayBeSettings(name):
		return 0
	case IsSettingsPath(dir, []string{name}) && !IsSettingsPath(dir, nil):
		return 2
	case IsSettingsPath(name, nil):
		return 1
	}
	return 0
}

// isTwoLevelsDeep reports whether part, followed by the components rest, is one
// of the settings that stand two levels below their project's directory.
func isTwoLevelsDeep(part string, rest []string) bool {
	if len(rest) != 2 {
		return false
	}
	return pathname.EqualFold(part, ".jj") && pathname.EqualFold(rest[0], "repo") && pathname.EqualFold(rest[1], "config.toml") || // Jujutsu's aliases and programs
		pathname.EqualFold(part, "_darcs") && pathname.EqualFold(rest[0], "prefs") && pathname.EqualFold(rest[1], "defaults") || // hooks of darcs
		pathname.EqualFold(part, "mise") && pathname.EqualFold(rest[0], "conf.d") && pathname.HasSuffixFold(rest[1], ".toml")
}

// IsSettingsPointer reports whether an entry, if it is not a directory, leads to the
// settings that IsSettingsThreeUp knows: a link, or the file .jj/repo with a path. dir
// is the name of the directory that contains the entry.
func IsSettingsPointer(dir, name string) bool {
	return pathname.EqualFold(dir, ".jj") && pathname.EqualFold(name, "repo") || pathname.EqualFold(dir, "_darcs") && pathname.EqualFold(name, "prefs") ||
		pathname.EqualFold(dir, "mise") && pathname.EqualFold(name, "conf.d")
}

// IsSettingsThreeUp reports whether an entry holds settings of the directory three
// levels above it, for which SettingsDepth returns 0. dirs are the names of the two
// directories above the entry, the outer one first.
func IsSettingsThreeUp(dirs [2]string, name string) bool {
	return isTwoLevelsDeep(dirs[0], []string{dirs[1], name})
}

// isMiseConfig reports whether a file of a directory mise holds its settings:
// config.toml, config.local.toml, config.ENV.toml.
func isMiseConfig(name string) bool {
	lowered := strings.ToLower(name)
	return strings.HasPrefix(lowered, "config.") && strings.HasSuffix(lowered, ".toml")
}

// HoldsParentSettings reports whether a directory of this name holds settings of the
// directory above it next to other files, as .config does.
func HoldsParentSettings(name string) bool {
	return slices.ContainsFunc([]string{".clinerules", ".config", ".github", ".hg", ".jj", ".lsp", ".pijul", ".sl", "_darcs", "mise"}, func(parent string) bool { return pathname.EqualFold(name, parent) })
}

// mayBeSettings reports at little cost whether SettingsDepth may be above 0 for a name.
func mayBeSettings(name string) bool {
	if name == "" {
		return false
	}
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return true
		}
	}
	switch pathname.Lower(name[0]) {
	case '.', '$', '_', 'b', 'c', 'g', 'h', 'i', 'k', 'l', 'm', 'o', 's':
		return true
	}
	return hasSettingsSuffix(name)
}

// IsSettingsPath reports whether the component part of a path, followed by the
// components rest, is or begins the path of a file or directory with settings by which
// programs run, in any letter case. The caller folds names that are not ASCII first
// (pathname.Fold).
func IsSettingsPath(part string, rest []string) bool {
	if slices.ContainsFunc(settingsDirs, func(name string) bool { return pathname.EqualFold(part, name) }) {
		return true
	}
	if pathname.EqualFold(part, ".config") && len(rest) > 0 && (pathname.EqualFold(rest[0], "mise") || pathname.EqualFold(rest[0], "mise.toml") || pathname.EqualFold(rest[0], "irb")) {
		return true // further places of the settings of mise and irb
	}
	if pathname.EqualFold(part, ".hg") && len(rest) == 1 && (pathname.EqualFold(rest[0], "hgrc") || pathname.EqualFold(rest[0], "hgrc-not-shared") || pathname.EqualFold(rest[0], "sharedpath")) {
		return true // Mercurial's hooks, aliases and extensions of a repository, also of the one that sharedpath leads to
	}
	if isTwoLevelsDeep(part, rest) {
		return true
	}
	if pathname.EqualFold(part, ".sl") && len(rest) == 1 && (pathname.EqualFold(rest[0], "config") || pathname.EqualFold(rest[0], "sharedpath")) {
		return true // as .hg/hgrc and .hg/sharedpath, of Sapling
	}
	if pathname.EqualFold(part, ".pijul") && len(rest) == 1 && pathname.EqualFold(rest[0], "config") {
		return true // hooks of Pijul
	}
	if pathname.EqualFold(part, ".lsp") && len(rest) == 1 && pathname.EqualFold(rest[0], "config.edn") {
		return true // clojure-lsp runs its classpath-cmd
	}
	if pathname.EqualFold(part, ".clinerules") && len(rest) > 0 && pathname.EqualFold(rest[0], "hooks") {
		return true // Cline runs its files
	}
	if pathname.EqualFold(part, ".github") && (len(rest) > 0 && pathname.EqualFold(rest[0], "hooks") || len(rest) == 1 && pathname.EqualFold(rest[0], "lsp.json")) {
		return true // Copilot's command line runs the hooks of *.json in it, and starts the language servers of lsp.json
	}
	if len(rest) > 0 {
		return pathname.EqualFold(part, "mise") && len(rest) == 1 && isMiseConfig(rest[0])
	}
	if slices.ContainsFunc(settingsFiles, func(name string) bool { return pathname.EqualFold(part, name) }) {
		return true
	}
	lowered := strings.ToLower(part)
	return hasSettingsSuffix(part) ||
		pathname.HasSuffixFold(part, ".toml") && (strings.HasPrefix(lowered, "mise.") || strings.HasPrefix(lowered, ".mise."))
}

// hasSettingsSuffix reports whether a file of any name with this suffix holds
// settings: tasks as .vscode, or the project of an IDE as .idea.
func hasSettingsSuffix(name string) bool {
	return slices.ContainsFunc([]string{".code-workspace", ".sublime-project", ".ipr", ".iws"}, func(suffix string) bool { return pathname.HasSuffixFold(name, suffix) })
}
