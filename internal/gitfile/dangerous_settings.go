// Package gitfile reads git's own files: configuration, index, and the steps of
// an unfinished operation. It finds the entries that make git run a program,
// follow other settings or write outside the work tree. It works on content
// and opens no files.
package gitfile

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// DangerousSettings lists the settings of a git configuration file, as
// "section.name.key=value", that make git run a program, read settings from
// elsewhere, or look for hooks elsewhere. ok is false for a file that git
// would not understand.
//
// It is broad: a key that sounds like a program counts in any section.
// testdata/keys.tsv classifies the keys that git documents.
func DangerousSettings(config []byte) (settings []string, ok bool) {
	p := newParser(config)
	for p.next() {
		if isDangerousSetting(p.section, p.key, p.value) {
			settings = append(settings, p.setting())
		}
	}
	return settings, !p.malformed
}

// DangerousModulesSettings lists the settings of a .gitmodules file, in the form of
// DangerousSettings, that make git run a program, or that name a directory outside the
// work tree. ok is false for a file that git would not understand.
func DangerousModulesSettings(modules []byte) (settings []string, ok bool) {
	p := newParser(modules)
	for p.next() {
		_, name, _ := strings.Cut(p.section, ".")
		path := p.key == "path" && (hasDotDot(p.value) || strings.HasPrefix(p.value, "-") || strings.HasPrefix(p.value, "/"))
		if path || hasDotDot(name) || isDangerousSetting(p.section, p.key, p.value) {
			settings = append(settings, p.setting())
		}
	}
	return settings, !p.malformed
}

// hasDotDot reports whether a component of a path is "..".
func hasDotDot(path string) bool {
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// WithoutSettings returns a git configuration file without the given settings, which
// are in the form of DangerousSettings. All other bytes are kept, comments too, except
// that a line on which nothing remains is removed.
func WithoutSettings(config []byte, settings []string) []byte {
	var out []byte
	p, kept := newParser(config), 0
	for p.next() {
		if !slices.Contains(settings, p.setting()) {
			continue
		}
		start, end := len(config)-p.afterKey, len(config)-p.afterValue
		first := start
		for first > kept && (config[first-1] == ' ' || config[first-1] == '\t') {
			first--
		}
		alone := first == 0 || config[first-1] == '\n'
		if alone && end < len(config) && config[end] == '\r' {
			end++
		}
		if alone && (end == len(config) || config[end] == '\n') {
			start, end = first, min(end+1, len(config))
		}
		out, kept = append(out, config[kept:start]...), end
	}
	return append(out, config[kept:]...)
}

// programKeys are the keys, in whichever section, whose value is a program or
// leads to one.
var programKeys = []string{
	"hookspath", "fsmonitor", "askpass", "gitproxy", "attributesfile", "worktree", "helper", "clean", "smudge", "process", "textconv",
	"driver", "dbdriver", "external", "uploadpack", "receivepack", "uploadarchive", "vcs", "templatedir", "difffilter", "tunnel", "smtpserver",
	"smtpserveroption", "browser", "httpd", "modulepath", "standalonetransferagent",
}

// programKeyEndings are the endings of further keys whose value is a program.
var programKeyEndings = []string{"command", "cmd", "hook", "editor", "pager", "program", "prog"}

// isDangerousSetting reports whether a setting makes git run a program, read settings
// from elsewhere, or look for hooks elsewhere. section and key are in lower case, the
// section with its name: filter.lfs.
func isDangerousSetting(section, key, value string) bool {
	kind, name, _ := strings.Cut(section, ".")
	switch {
	case kind == "advice" || kind == "color" || kind == "column":
		return false // switches and colours
	case kind == "include" || kind == "includeif":
		return true
	case strings.HasPrefix(strings.TrimSpace(value), "!") || strings.Contains(section+value, "ext::"):
		return true
	case kind == "alias":
		return !isPlainAlias(value)
	case kind == "protocol" && key == "allow":
		return value != "never"
	case kind == "pager":
		return !isBool(value)
	case isBool(value) && key == "fsmonitor":
		return false
	case kind == "hook":
		return true
	case kind == "tig" && name != "color":
		return !isBool(value) && strings.Trim(value, "0123456789%") != "" // keys that run a command, further settings, diff-highlight
	case kind == "gitflow":
		return key == "hooks" || strings.ContainsAny(value, "\"$`\\\n") // git flow passes values to eval in double quotes
	case kind == "annex" || strings.HasPrefix(key, "annex-"): // ssh-options of git-annex name a ProxyCommand
		return strings.HasSuffix(key, "options") || strings.HasSuffix(key, "transport") || strings.HasSuffix(key, "command")
	case kind == "svn" && (key == "configdir" || key == "config-dir"):
		return true // its file config names the programs of svn+NAME://
	case key == "path" && slices.Contains([]string{"mergetool", "difftool", "browser", "man", "lfs"}, kind):
		return true
	case (kind == "diff" || kind == "merge") && (key == "tool" || key == "guitool"):
		return strings.ContainsAny(value, `/\`) // git-mergetool--lib sources the file of this name in its directory
	case kind == "format" && slices.Contains([]string{"outputdirectory", "suffix", "signaturefile"}, key), kind == "commit" && key == "template":
		return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~") || strings.Contains(value, "..") // written or read elsewhere
	case key == "savecookies":
		return !isFalse(value) // into the file http.cookieFile
	case key == "cookiefile":
		return value != ""
	case kind == "core" && (key == "protecthfs" || key == "protectntfs"):
		return !isTrue(value) // if false, a checkout may write to .git under another spelling
	case kind == "mergetool" && key == "layout":
		return true // the shell evaluates it
	case strings.HasPrefix(name, "-") && (kind == "remote" || kind == "remotes" || kind == "submodule"):
		return true // git fetch --all starts git fetch with the name of each remote, which is an option then
	case kind == "remotes":
		return !remoteNames().MatchString(value) // arguments of git fetch
	case kind == "branch" && (key == "remote" || key == "pushremote"), kind == "remote" && key == "pushdefault":
		return isHelperURL(value)
	case kind == "branch" && key == "mergeoptions":
		return !mergeOptions().MatchString(value)
	case kind == "pull" && (key == "twohead" || key == "octopus"):
		return slices.ContainsFunc(strings.Fields(value), func(name string) bool { return !isStrategy(name) })
	case kind == "rebase" && key == "instructionformat":
		return !oneLineFormat().MatchString(value) // a line of its own in the list of steps may be exec
	case (kind == "remote" || kind == "submodule") && (key == "url" || key == "pushurl"):
		return isHelperURL(value)
	case kind == "url" && (key == "insteadof" || key == "pushinsteadof"):
		return !urlPrefixWithHost().MatchString(name)
	}
	return slices.Contains(programKeys, key) || slices.ContainsFunc(programKeyEndings, func(end string) bool { return strings.HasSuffix(key, end) })
}

var (
	// oneLineFormat matches a format of placeholders that git fills in without
	// a line break. A format without any may be the name of another one.
	oneLineFormat = lazyregexp.New(`^[^%\n]*%([hHtTpPsfdD]|[ac][nNeElLdDrtiIsh])([^%\n]|%([hHtTpPsfdD]|[ac][nNeElLdDrtiIsh]))*$`)
	// remoteNames matches names of remotes without a path or option.
	remoteNames = lazyregexp.New(`^\s*(\w[\w.-]*(\s+|$))*$`)
	// mergeOptions matches options of git merge without a path. A path could be
	// a strategy, which is part of a program's name.
	mergeOptions = lazyregexp.New(`^\s*((--(no-)?(ff|ff-only|edit|commit|squash|log|stat|signoff|verify-signatures|rerere-autoupdate|autostash|allow-unrelated-histories)` +
		`|-n|-s\s*(ort|ours|recursive|resolve|octopus|subtree)|-X\s*[a-z-]+(=[a-z]+)?)(\s+|$))*$`)
	// urlPrefixWithHost matches a prefix of a URL with scheme and host, which
	// cannot become a helper's address together with the text after it.
	urlPrefixWithHost = lazyregexp.New(`^((https?|ssh|git|git\+ssh|ftps?)://|[\w.-]+@[\w.-]+:)`)
)

// isBool reports whether value is one of git's words for true or false, or is
// empty.
func isBool(value string) bool { return value == "" || isTrue(value) || isFalse(value) }

// isTrue reports whether a value is one of git's words for true. Git also
// accepts other numbers. An empty value is false to git, a missing one true;
// isTrue returns false for both.
func isTrue(value string) bool {
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
}

// isFalse reports whether a value is one of git's words for false. Git also
// takes the empty value and spellings of zero (00, 0x0, 0k, -0) for false.
func isFalse(value string) bool {
	return slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
}
