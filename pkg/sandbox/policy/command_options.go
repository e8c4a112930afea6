package policy

import (
	"strings"
)

// commandOptions are the options of ordinary programs whose value is a command
// that the program runs.
var commandOptions = map[string]string{
	"tar":    "-I --use-compress-program --to-command --rsh-command -F --info-script --new-volume-script --checkpoint-action",
	"bsdtar": "--use-compress-program", "cpio": "--rsh-command", "sort": "--compress-program", "split": "--filter",
	"rg": "--pre --hostname-bin", "ag": "--pager", "bat": "--pager", "batcat": "--pager", "delta": "--pager",
	"man": "-P --pager -H --html", "zip": "-TT --unzip-command", "rsync": "-e --rsh --rsync-path", "scp": "-S -o", "sftp": "-S -o",
	"go": "-exec -toolexec -vettool", "gcc": "-wrapper", "g++": "-wrapper", "cargo": "--config", "install": "--strip-program",
	"less": "-k --lesskey-src", "ctags": "--options", "fd": "-x -X --exec --exec-batch", "fdfind": "-x -X --exec --exec-batch",
	"tcpdump": "-z", "logrotate": "-f", "csplit": "", "diff3": "--diff-program", "sdiff": "--diff-program", "hyperfine": "-p -s -c --prepare --setup --cleanup",
	"npm": "--node-options --script-shell", "pip": "--config-settings", "date": "", "journalctl": "", "openssl": "-engine",
	"dpkg": "--pre-invoke --post-invoke", "apt": "-o", "apt-get": "-o", "gpg": "--exec-path", "mail": "", "wget": "--use-askpass",
}

// checkCommandOptions checks every command that an option of commandOptions
// gives: its value, or all words after it.
func (s *shellText) checkCommandOptions(c simpleCommand) {
	options, args := strings.Fields(commandOptions[c.progName]), c.args()
	where := "an option of " + c.progName
	for i, arg := range args {
		for _, option := range options {
			value, ok := optionValue(option, arg.text)
			switch {
			case !ok:
			case value != "":
				s.checkCommandValue(field{text: value}, where)
			case strings.HasPrefix(c.progName, "fd"): // fd -x COMMAND…
				s.checkCommandValue(joinWords(args[i+1:]), where)
			case i+1 < len(args):
				s.checkCommandValue(args[i+1], where)
			}
		}
		switch {
		case c.progName == "tar" && isTarCommandOption(arg.text, i == 0):
			s.addDoubt(true, "an option of tar is a command to run")
		case (c.progName == "rsync" || c.progName == "man") && isClusterEndingIn(arg.text, map[string]string{"rsync": "e", "man": "P"}[c.progName]) && i+1 < len(args):
			s.checkCommandValue(args[i+1], where)
		case c.progName == "less" && strings.HasPrefix(arg.text, "+") && strings.ContainsAny(arg.text, "!|"+unknownText):
			s.addDoubt(true, "less %s runs a command", excerpt(strings.ReplaceAll(arg.text, unknownText, "…")))
		}
	}
}

// isTarCommandOption reports whether an argument is a cluster of tar's short
// options with -I or -F in it. first says that it is the first argument, which
// needs no dash.
func isTarCommandOption(arg string, first bool) bool {
	letters, dashed := strings.CutPrefix(arg, "-")
	if !dashed && !first || strings.HasPrefix(letters, "-") {
		return false
	}
	if end := strings.IndexAny(letters, "bCfgHKLNTVX"); end >= 0 && dashed {
		letters = letters[:end] // what follows is a value
	}
	return strings.ContainsAny(letters, "IF")
}

// isClusterEndingIn reports whether an argument is several short options, and
// the last is the letter.
func isClusterEndingIn(arg, letter string) bool {
	return len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, letter)
}

// optionValue reports whether arg is the option, also abbreviated or with its
// value attached. value is the attached value, or "".
func optionValue(option, arg string) (value string, isOption bool) {
	if arg == option {
		return "", true
	}
	if value, ok := strings.CutPrefix(arg, option+"="); ok {
		return value, true
	}
	if len(option) == 2 && option[0] == '-' && !strings.HasPrefix(arg, "--") {
		return strings.CutPrefix(arg, option)
	}
	if name, value, _ := strings.Cut(arg, "="); len(name) > 5 && strings.HasPrefix(option, name) && strings.HasPrefix(name, "--") {
		return value, true
	}
	return "", false
}
