package policy

import (
	"path"
	"slices"
	"strings"
)

// gitGrammar has the options of git itself, before its subcommand.
var gitGrammar = grammar{short: "Cc", long: "git-dir work-tree namespace config-env attr-source super-prefix exec-path"}

// countGitGlobalArgs returns the number of git's arguments before its
// subcommand.
func countGitGlobalArgs(args []field) int {
	_, rest, _ := gitGrammar.leadingOptions(args)
	return len(args) - len(rest)
}

// gitRunningKeys are patterns for the keys of git's configuration, in lower
// case, whose value is a command, or names files whose content runs. A final .*
// matches any rest.
var gitRunningKeys = strings.Fields(`core.pager core.editor core.sshcommand core.gitproxy core.askpass core.fsmonitor core.hookspath
	core.attributesfile core.alternaterefscommand alias.* pager.* diff.external diff.*.command diff.*.textconv merge.*.driver filter.* difftool.*
	mergetool.* credential.* include.path includeif.* sequence.editor gpg.program gpg.*.program protocol.* uploadpack.packobjectshook
	remote.*.uploadpack remote.*.receivepack remote.*.vcs url.* man.* browser.* web.browser help.browser submodule.*.update interactive.difffilter
	sendemail.* instaweb.* trailer.* tar.* init.templatedir fsmonitor.* ssh.variant receive.procreceiverefs guitool.*`)

// isGitRunningKey reports whether a key of git's configuration matches
// gitRunningKeys, in any case of letters.
func isGitRunningKey(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(gitRunningKeys, func(pattern string) bool {
		if name, ok := strings.CutSuffix(pattern, ".*"); ok {
			return strings.HasPrefix(key, name+".")
		}
		fits, _ := path.Match(pattern, strings.ReplaceAll(key, "/", "_"))
		return fits
	})
}

// checkGit checks how a git command can run other programs: by settings,
// options of subcommands, and bisect run, submodule foreach, filter-branch.
func (s *shellText) checkGit(c simpleCommand) {
	options, rest, sure := gitGrammar.leadingOptions(c.args())
	if !sure {
		s.addDoubt(true, "it cannot be told which of its words is git's subcommand")
		return
	}
	for _, o := range options {
		switch o.name {
		case "-c", "--config-env":
			s.checkGitSetting(o.value, "git "+o.name)
		case "--exec-path":
			if o.value.text != "" {
				s.addDoubt(true, "git --exec-path decides which programs run")
			}
		}
	}
	if len(rest) == 0 {
		return
	}
	for _, arg := range rest {
		if strings.HasPrefix(arg.text, "ext::") {
			s.addDoubt(true, "git's ext:: transport runs a command")
		}
	}
	args := rest[1:]
	switch rest[0].text {
	case "config":
		s.checkGitConfig(args)
	case "bisect":
		if len(args) > 1 && args[0].is("run") {
			s.checkCommand(args[1:], nil, false)
		}
	case "submodule":
		if i := slices.IndexFunc(args, func(f field) bool { return f.is("foreach") }); i >= 0 {
			args = args[i+1:]
			for len(args) > 0 && args[0].is("--recursive", "--quiet") {
				args = args[1:]
			}
			s.checkNestedShell(joinWords(args), nil, field{text: "sh"})
		}
	case "clone", "fetch", "pull", "push", "ls-remote", "archive", "fetch-pack", "send-pack":
		s.checkGitOptions(args, "--upload-pack", "--receive-pack", "--exec", "-c", "--config", "--template")
		if rest[0].is("clone", "ls-remote") {
			s.checkGitOptions(args, "-u")
		}
	case "rebase":
		s.checkGitOptions(args, "-x", "--exec")
	case "difftool", "mergetool":
		s.checkGitOptions(args, "-x", "--extcmd")
	case "grep":
		s.checkGitOptions(args, "-O", "--open-files-in-pager")
	case "init":
		s.checkGitOptions(args, "--template")
	case "filter-branch":
		s.addDoubt(true, "git filter-branch runs its filters")
	}
}

// checkGitOptions checks the named options of a git subcommand. The value of -c
// and --config is a setting, of the others a command.
func (s *shellText) checkGitOptions(args []field, names ...string) {
	for i, arg := range args {
		if arg.is("--") {
			return
		}
		for _, name := range names {
			text, ok := optionValue(name, arg.text)
			if !ok || name == "-u" && arg.text != "-u" {
				continue
			}
			value := field{text: text}
			if text == "" && i+1 < len(args) {
				value = args[i+1]
			}
			if name == "-c" || name == "--config" {
				s.checkGitSetting(value, "git "+name)
			} else {
				s.checkCommandValue(value, "git "+name)
			}
		}
	}
}

// checkGitSetting checks key=value of git's configuration. where names its
// place for the doubt's reason.
func (s *shellText) checkGitSetting(setting field, where string) {
	key, value, _ := strings.Cut(setting.text, "=")
	switch {
	case strings.Contains(key, unknownText):
		s.addDoubt(true, "%s sets a key that is not known", where)
	case !isGitRunningKey(key):
	case slices.Contains([]string{"", "false", "true", "/dev/null", "cat", "always", "never", "user"}, value):
	case strings.HasPrefix(strings.ToLower(key), "alias."):
		s.checkGitAlias(value, where+" "+excerpt(key))
	case slices.ContainsFunc(gitFileKeys, func(part string) bool { return strings.Contains(strings.ToLower(key), part) }):
		s.addDoubt(strings.Contains(value, unknownText), "%s sets %s, which may run a command", where, excerpt(key))
	default:
		s.checkCommandValue(field{text: value}, where+" "+excerpt(key))
	}
}

// gitFileKeys are parts of the keys among gitRunningKeys whose value is not a
// command, but a file, a directory or an address.
var gitFileKeys = []string{"core.hookspath", "core.attributesfile", "init.templatedir", "include", "url.", "remote."}

// checkGitConfig checks the arguments of git config if they set a key or start
// an editor. It ignores commands that only read or unset.
func (s *shellText) checkGitConfig(args []field) {
	g := grammar{short: "ft", long: "file blob type default comment value fixed-value url"}
	options, rest, _ := g.leadingOptions(args)
	if _, reads := lastValue(options, "--get", "--get-all", "--get-regexp", "--list", "-l", "--unset", "--unset-all", "--get-urlmatch"); reads {
		return
	}
	if _, edits := lastValue(options, "-e", "--edit"); edits {
		s.addDoubt(true, "git config --edit starts an editor")
		return
	}
	if len(rest) > 0 && rest[0].is("get", "list", "unset") {
		return
	}
	if len(rest) > 0 && rest[0].is("set") {
		_, rest, _ = g.leadingOptions(rest[1:])
	}
	if len(rest) > 1 {
		s.checkGitSetting(field{text: rest[0].text + "=" + rest[1].text}, "git config")
	}
}
