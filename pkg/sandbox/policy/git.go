package policy

import (
	"path"
	"slices"
	"strings"
)

var gitGrammar = grammar{short: "Cc", long: "git-dir work-tree namespace config-env attr-source super-prefix exec-path"}

// gitGlobals returns how many of git's arguments stand before its subcommand.
func gitGlobals(args []field) int {
	_, rest, _ := gitGrammar.options(args)
	return len(args) - len(rest)
}

// executingKeys are the keys of git's configuration whose value runs, or
// reads in what runs.
var executingKeys = strings.Fields(`core.pager core.editor core.sshcommand core.gitproxy core.askpass core.fsmonitor core.hookspath
	core.attributesfile core.alternaterefscommand alias.* pager.* diff.external diff.*.command diff.*.textconv merge.*.driver filter.* difftool.*
	mergetool.* credential.* include.path includeif.* sequence.editor gpg.program gpg.*.program protocol.* uploadpack.packobjectshook
	remote.*.uploadpack remote.*.receivepack remote.*.vcs url.* man.* browser.* web.browser help.browser submodule.*.update interactive.difffilter
	sendemail.* instaweb.* trailer.* tar.* init.templatedir fsmonitor.* ssh.variant receive.procreceiverefs guitool.*`)

func executingKey(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(executingKeys, func(pattern string) bool {
		if name, ok := strings.CutSuffix(pattern, ".*"); ok {
			return strings.HasPrefix(key, name+".")
		}
		fits, _ := path.Match(pattern, strings.ReplaceAll(key, "/", "_"))
		return fits
	})
}

// git judges the ways in which git runs other programs.
func (s *scope) git(c call) {
	options, rest, sure := gitGrammar.options(c.args())
	if !sure {
		s.doubt(true, "it cannot be told which of its words is git's subcommand")
		return
	}
	for _, o := range options {
		switch o.name {
		case "-c", "--config-env":
			s.gitSetting(o.value, "git "+o.name)
		case "--exec-path":
			if o.value.text != "" {
				s.doubt(true, "git --exec-path decides which programs run")
			}
		}
	}
	if len(rest) == 0 {
		return
	}
	for _, arg := range rest {
		if strings.HasPrefix(arg.text, "ext::") {
			s.doubt(true, "git's ext:: transport runs a command")
		}
	}
	args := rest[1:]
	switch rest[0].text {
	case "config":
		s.gitConfig(args)
	case "bisect":
		if len(args) > 1 && args[0].is("run") {
			s.simple(args[1:], nil, false)
		}
	case "submodule":
		if i := slices.IndexFunc(args, func(f field) bool { return f.is("foreach") }); i >= 0 {
			args = args[i+1:]
			for len(args) > 0 && args[0].is("--recursive", "--quiet") {
				args = args[1:]
			}
			s.nested(joined(args), nil, field{text: "sh"})
		}
	case "clone", "fetch", "pull", "push", "ls-remote", "archive", "fetch-pack", "send-pack":
		s.gitOption(args, "--upload-pack", "--receive-pack", "--exec", "-c", "--config", "--template")
		if rest[0].is("clone", "ls-remote") {
			s.gitOption(args, "-u")
		}
	case "rebase":
		s.gitOption(args, "-x", "--exec")
	case "difftool", "mergetool":
		s.gitOption(args, "-x", "--extcmd")
	case "grep":
		s.gitOption(args, "-O", "--open-files-in-pager")
	case "init":
		s.gitOption(args, "--template")
	case "filter-branch":
		s.doubt(true, "git filter-branch runs its filters")
	}
}

// gitOption judges options of a subcommand whose value is a command, or for
// -c and --config a setting.
func (s *scope) gitOption(args []field, names ...string) {
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
				s.gitSetting(value, "git "+name)
			} else {
				s.commandValue(value, "git "+name)
			}
		}
	}
}

// gitSetting judges key=value.
func (s *scope) gitSetting(setting field, where string) {
	key, value, _ := strings.Cut(setting.text, "=")
	switch {
	case strings.Contains(key, anything):
		s.doubt(true, "%s sets a key that is not known", where)
	case !executingKey(key):
	case slices.Contains([]string{"", "false", "true", "/dev/null", "cat", "always", "never", "user"}, value):
	case strings.HasPrefix(strings.ToLower(key), "alias."):
		s.gitAlias(value, where+" "+excerpt(key))
	case slices.ContainsFunc(fileKeys, func(part string) bool { return strings.Contains(strings.ToLower(key), part) }):
		s.doubt(strings.Contains(value, anything), "%s sets %s, which may run a command", where, excerpt(key))
	default:
		s.commandValue(field{text: value}, where+" "+excerpt(key))
	}
}

// fileKeys are parts of those keys whose value is a file or directory with
// what runs, or an address.
var fileKeys = []string{"core.hookspath", "core.attributesfile", "init.templatedir", "include", "url.", "remote."}

// gitConfig judges git config KEY VALUE; reading is no matter.
func (s *scope) gitConfig(args []field) {
	g := grammar{short: "ft", long: "file blob type default comment value fixed-value url"}
	options, rest, _ := g.options(args)
	if _, reads := valueOf(options, "--get", "--get-all", "--get-regexp", "--list", "-l", "--unset", "--unset-all", "--get-urlmatch"); reads {
		return
	}
	if _, edits := valueOf(options, "-e", "--edit"); edits {
		s.doubt(true, "git config --edit starts an editor")
		return
	}
	if len(rest) > 0 && rest[0].is("get", "list", "unset") {
		return
	}
	if len(rest) > 0 && rest[0].is("set") {
		_, rest, _ = g.options(rest[1:])
	}
	if len(rest) > 1 {
		s.gitSetting(field{text: rest[0].text + "=" + rest[1].text}, "git config")
	}
}
