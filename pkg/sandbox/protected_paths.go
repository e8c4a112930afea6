package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// writePolicy holds the paths that are protected from writing in addition to the names
// in this file, and the user's exceptions.
type writePolicy struct {
	allow    []string // globs over slash paths
	homes    []string // home directories, whose startup files shells run
	git      []string // git settings of the user and the system
	template string   // template directory of git in the environment, or ""
	own      []string // configuration and state of the program, with everything in them
	bin      string   // directory of the program's own binaries
}

// writePolicy returns the policy for the configuration and the environment.
func (s *Sandbox) writePolicy() *writePolicy {
	p := &writePolicy{homes: realPaths(s.homeDirs())}
	p.allow = s.expandGlobs(s.config.AllowWrites)
	getenv := s.config.Getenv
	p.git, p.template = []string{"/etc/gitconfig"}, getenv("GIT_TEMPLATE_DIR")
	for _, variable := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		if file := getenv(variable); filepath.IsAbs(file) {
			p.git = append(p.git, file)
		}
	}
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		p.git = append(p.git, filepath.Join(dir, "git", "config"))
	}
	for _, home := range p.homes {
		p.git = append(p.git, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"))
	}
	own := append([]string{getenv("MCP_STATE_DIR")}, s.config.Protect...)
	for _, at := range []struct{ variable, inHome string }{{"XDG_STATE_HOME", ".local/state"}, {"XDG_CONFIG_HOME", ".config"}} {
		if dir := getenv(at.variable); filepath.IsAbs(dir) {
			own = append(own, filepath.Join(dir, "toolroom"))
		}
		for _, home := range p.homes {
			own = append(own, filepath.Join(home, filepath.FromSlash(at.inHome), "toolroom"))
		}
	}
	for _, dir := range own {
		if dir == "" {
			continue
		}
		if abs, err := s.expandDir(dir); err == nil {
			p.own = append(p.own, abs)
		}
	}
	p.own = append(p.own, realPaths(p.own)...)
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			p.bin = filepath.Dir(real)
		}
	}
	return p
}

// realPaths returns the paths that exist, with links resolved.
func realPaths(paths []string) []string {
	var real []string
	for _, path := range paths {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			real = append(real, r)
		}
	}
	return real
}

// Protected returns why a tool must not write the file at an absolute path, or "": an
// unconfined program would later run it or obey its settings. --allow-write lifts the
// protection.
func (f *FS) Protected(abs string) string {
	why := f.writes().protectionReason(abs)
	if why == "" || f.matchesAny(f.writes().allow, abs) {
		return ""
	}
	return why
}

// protectionReason returns why the file at an absolute path is protected, for use after
// its name; "" if it is not. It ignores p.allow.
func (p *writePolicy) protectionReason(abs string) string {
	parts := splitPath(abs[len(filepath.VolumeName(abs)):])
	for i, part := range parts {
		if !pathname.IsASCII(part) {
			parts[i] = pathname.Fold(part)
		}
	}
	if why := protectedNameReason(parts); why != "" {
		return why
	}
	if p.isOwnFile(abs) {
		return "is part of the tools' own configuration or state"
	}
	if name := pathname.Base(abs); p.bin != "" && filepath.Dir(abs) == p.bin && strings.HasPrefix(name, "mcp-") {
		return "is one of the tools' own programs"
	}
	for _, home := range p.homes {
		if rel, ok := relativeTo(home, abs); ok && isShellStartup(splitPath(rel)) {
			return "is read by shells or programs when they start"
		}
	}
	return ""
}

// isOwnFile reports whether a path is in one of p.own.
func (p *writePolicy) isOwnFile(abs string) bool {
	for _, dir := range p.own {
		if contains(dir, abs) || foldsCase && contains(strings.ToLower(dir), strings.ToLower(abs)) {
			return true
		}
	}
	return false
}

// ProtectedByUser reports whether a file is protected because the configuration or the
// user (--protect) names its path, not because of its own name. Commands must not
// remove it, not even with a directory above it.
func (f *FS) ProtectedByUser(abs string) bool {
	return f.writes().isOwnFile(abs) && !f.matchesAny(f.writes().allow, abs)
}

// protectedNameReason returns why a file with these path components is protected, as
// words for use after its name ("is run by direnv"), for names that are protected at any
// depth, or "".
func protectedNameReason(parts []string) string {
	for i, part := range parts {
		rest := parts[i+1:]
		switch {
		case pathname.EqualFold(part, ".git") && len(rest) == 0:
			return "tells git where the repository is"
		case pathname.EqualFold(part, ".git") || pathname.HasSuffixFold(part, ".git") && len(rest) > 1:
			if why := gitFileReason(rest); why != "" {
				return why
			}
		case pathname.EqualFold(part, ".envrc") && len(rest) == 0:
			return "is run by direnv"
		case projectfile.IsSettingsPath(part, rest):
			return "is a setting by which an agent, editor or shell starts programs"
		}
	}
	return ""
}

// gitFileReason returns why git runs or follows a file of a repository, or "". rest
// holds the components below .git. It also covers modules and worktrees in it.
//
// Branches and objects may have any name, so hooks counts only directly below the top
// of a repository. The name of a module's top is not known, since module names may
// contain slashes and be called refs. So below modules, hooks always counts.
func gitFileReason(rest []string) string {
	for i, part := range rest {
		switch {
		case i == 0 && (pathname.EqualFold(part, "objects") || pathname.EqualFold(part, "refs") || pathname.EqualFold(part, "logs")):
			return ""
		case i == 2 && pathname.EqualFold(rest[0], "worktrees") && (pathname.EqualFold(part, "refs") || pathname.EqualFold(part, "logs")):
			return ""
		case pathname.EqualFold(part, "hooks"):
			return "is run by git"
		case pathname.EqualFold(part, "rebase-merge") || pathname.EqualFold(part, "rebase-apply") || pathname.EqualFold(part, "sequencer"):
			return "is a list of steps that git continues with and may run"
		case i == 0 && (pathname.EqualFold(part, "remotes") || pathname.EqualFold(part, "branches")) && len(rest) > 1:
			return "tells git where to fetch from and with which program"
		case i == 0 && pathname.EqualFold(part, "gitweb") && len(rest) > 1:
			return "is run by git instaweb"
		case pathname.EqualFold(part, "info") && i == len(rest)-2 && pathname.EqualFold(rest[i+1], "attributes"):
			return "tells git which programs to run on files"
		}
	}
	own := len(rest) == 1 || pathname.EqualFold(rest[0], "modules") || pathname.EqualFold(rest[0], "worktrees")
	switch last := rest[len(rest)-1]; {
	case pathname.EqualFold(last, "gitdir") || pathname.EqualFold(last, "commondir"):
		return "tells git where the repository is"
	case own && (pathname.EqualFold(last, "index") || strings.HasPrefix(strings.ToLower(last), "sharedindex.")):
		return "tells git which files to check out, hooks too" // git restore does not check the paths in it
	case own && pathname.EqualFold(last, "lazygit.yml"):
		return "names commands that lazygit runs"
	case own && pathname.EqualFold(last, "MERGE_RR"):
		return "tells git which files to overwrite" // git rerere does not check the paths in it
	case own && pathname.EqualFold(last, "MERGE_AUTOSTASH"):
		return "names a stash that git writes into the work tree"
	}
	return ""
}

// isShellStartup reports whether shells or sessions run a file in a home directory, or
// whether it names programs that they run. rel holds the path components below the
// home.
func isShellStartup(rel []string) bool {
	first, rest := rel[0], len(rel)-1
	if rest == 0 {
		switch {
		case len(first) < 2 || first[0] != '.':
			return false
		case pathname.HasSuffixFold(first, "rc"), pathname.HasSuffixFold(first, "profile"), pathname.HasSuffixFold(first, "login"), pathname.HasSuffixFold(first, "logout"), pathname.HasSuffixFold(first, "env"):
			return true
		}
		for _, name := range []string{
			".bash_aliases", ".gitconfig", ".tmux.conf", ".emacs", ".gdbinit", ".lldbinit", ".xsession", ".pam_environment",
			".yarnrc.yml", ".forward", ".rhosts", ".crontab",
		} {
			if pathname.EqualFold(first, name) {
				return true
			}
		}
		return false
	}
	joined := strings.ToLower(strings.Join(rel, "/"))
	for _, prefix := range []string{
		".config/git/", ".config/fish/", ".config/autostart/", ".config/systemd/", ".config/environment.d/", ".config/nvim/",
		".config/pip/", ".local/share/systemd/", ".local/share/applications/", ".pip/", ".vim/", ".emacs.d/", "library/launchagents/",
		".cargo/config", ".m2/settings.xml", ".gradle/init", ".zsh/", ".oh-my-zsh/", ".bashrc.d/", ".zshrc.d/",
	} {
		if strings.HasPrefix(joined, prefix) {
			return true
		}
	}
	return false
}

// matchesAny reports whether a glob of the list, a result of expandGlobs, matches a
// path, either its absolute form or relative to a root.
func (f *FS) matchesAny(list []string, abs string) bool {
	if len(list) == 0 {
		return false
	}
	slash := filepath.ToSlash(abs)
	forms := []string{slash}
	for _, r := range f.roots {
		if rel, ok := relativeTo(r.Path, abs); ok {
			forms = append(forms, filepath.ToSlash(rel))
		}
	}
	for _, glob := range list {
		for _, form := range forms {
			if ok, err := doublestar.Match(glob, form); err == nil && ok {
				return true
			}
		}
	}
	return false
}

// expandGlobs extends the globs of a setting, so that each also matches everything in
// a matching directory and, if it has no slash, at any depth.
func (s *Sandbox) expandGlobs(given []string) []string {
	var globs []string
	for _, glob := range given {
		glob = filepath.ToSlash(glob)
		if rest, ok := strings.CutPrefix(glob, "~/"); ok && s.home() != "" {
			glob = strings.TrimSuffix(filepath.ToSlash(s.home()), "/") + "/" + rest
		}
		glob = strings.TrimSuffix(glob, "/")
		if !strings.Contains(glob, "/") {
			glob = "**/" + glob
		}
		globs = append(globs, glob, glob+"/**")
	}
	return globs
}
