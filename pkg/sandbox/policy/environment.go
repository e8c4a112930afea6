package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commandVariables are environment variables whose value is a command that
// programs run.
var commandVariables = strings.Fields(`PAGER MANPAGER GIT_PAGER SYSTEMD_PAGER BAT_PAGER EDITOR VISUAL FCEDIT GIT_EDITOR GIT_SEQUENCE_EDITOR
	SUDO_EDITOR BROWSER MANROFFOPT LESSOPEN LESSCLOSE GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS
	GIT_PROXY_COMMAND RSYNC_RSH CVS_RSH SVN_SSH SHELL RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER MAKESHELL CONFIG_SHELL TAR_RSH`)

// steeringVariables are variables that change which code runs, or how bash
// reads words, whatever harmless-looking value they have.
var steeringVariables = strings.Fields(`BASH_ENV ENV PS0 PS1 PS2 PS4 PROMPT_COMMAND IFS BASH_CMDS BASH_ALIASES SHELLOPTS BASHOPTS ZDOTDIR
	PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONINSPECT PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH
	JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH LUA_INIT TAR_OPTIONS MAKEFLAGS GCONV_PATH GIO_MODULE_DIR
	EXECIGNORE VIMINIT EXINIT GVIMINIT AWKPATH AWKLIBPATH LESS OPENSSL_CONF OPENSSL_ENGINES`)

// harmlessGitVariables are the variables of git whose values neither run code nor name
// code to run. GIT_DIR and GIT_WORK_TREE choose a repository, as git -C and cd do, which
// are not checked either: the settings of a repository may name programs.
var harmlessGitVariables = strings.Fields(`GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_TERMINAL_PROMPT GIT_MERGE_AUTOEDIT GIT_OPTIONAL_LOCKS
	GIT_CEILING_DIRECTORIES GIT_LITERAL_PATHSPECS GIT_FLUSH GIT_SSL_NO_VERIFY GIT_CONFIG_NOSYSTEM GIT_ADVICE GIT_DEFAULT_HASH GIT_REFLOG_ACTION
	GIT_LFS_SKIP_SMUDGE GIT_COMMIT GIT_BRANCH GIT_TAG GIT_SHA GIT_HASH GIT_REV GIT_VERSION GIT_URL GIT_REPO GIT_ROOT`)

// checkAssignment checks one NAME=VALUE, before a command or alone, with each
// combination of values of the variables in VALUE (see readings). It adds what it
// finds to the evaluation.
func (s *shellText) checkAssignment(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	if a.Index != nil {
		s.checkArithmExpr(a.Index)
	}
	s.current = s.sourceOf(a)
	name := a.Name.Value
	if a.Array != nil || a.Index != nil || a.Append {
		s.checkVariableValue(name, field{text: unknownText}, "")
		s.checkElements(a)
		return
	}
	for _, reading := range s.readings(a.Value) {
		s.checkVariableValue(name, s.expandText(a.Value, reading), "")
	}
}

// checkElements checks the values that an assignment gives to elements of
// BASH_CMDS or BASH_ALIASES.
func (s *shellText) checkElements(a *syntax.Assign) {
	words := []*syntax.Word{a.Value}
	if a.Array != nil {
		words = nil
		for _, elem := range a.Array.Elems {
			words = append(words, elem.Value)
		}
	}
	for _, word := range words {
		if word == nil || a.Append && a.Array == nil { // x[i]+=text adds to text that is not known
			continue
		}
		for _, reading := range s.readings(word) {
			s.checkCommandTable(a.Name.Value, s.expandText(word, reading))
		}
	}
}

// checkCommandTable checks a value that is put into one of bash's tables of
// commands: BASH_CMDS holds paths of programs, as hash -p sets them,
// BASH_ALIASES holds shell code. It ignores other names.
func (s *shellText) checkCommandTable(table string, value field) {
	later := field{text: unknownText, maybeMany: true} // the arguments
	switch table {
	case "BASH_CMDS":
		s.checkCommand([]field{value, later}, nil, false)
	case "BASH_ALIASES":
		s.checkNestedShell(joinWords([]field{value, later}), nil, s.arg0)
	}
}

// checkVariableValue checks a value that a variable, or its element name[…],
// gets. assigner is the builtin or program that assigns it; "" for an
// assignment statement. It adds a doubt if the value runs a command or changes
// which code runs.
func (s *shellText) checkVariableValue(name string, value field, assigner string) {
	name, _, _ = strings.Cut(name, "[")
	if value.text != unknownText {
		s.checkCommandTable(name, value)
	}
	switch {
	case slices.Contains(commandVariables, name):
		s.checkCommandValue(value, name)
	case name == "PATH":
		if !isHarmlessPath(value.text) {
			added := slices.Contains(strings.Split(value.text, ":"), unknownText)
			s.addDoubt(!added, "PATH decides which programs run")
		}
	case name == "IFS" && assigner == "" && (s.isFollowedBy("read ", "mapfile ", "readarray ") || strings.Trim(value.text, " \t\n") == ""):
	case areHarmlessOptions(name, value):
	case name == "PYTHONPATH" || name == "NODE_PATH":
		s.addDoubt(value.text == unknownText, "%s names directories of code that programs run", name)
	case name == "GOFLAGS":
		if value.hasUnknown() || strings.Contains(value.text, "exec") {
			s.addDoubt(true, "GOFLAGS may name a program to run")
		}
	case slices.Contains(steeringVariables, name), strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DYLD_"),
		strings.HasPrefix(name, "BASH_FUNC_"), strings.HasPrefix(name, "GIT_") && !isHarmlessGitVariable(name):
		if value.text != "" || name == "IFS" && assigner != "" {
			s.addDoubt(true, "%s changes what other commands run", name)
		}
	}
}

// areHarmlessOptions reports whether value, for LESS or NODE_OPTIONS, has only
// options known to run nothing. It returns false for other variables.
func areHarmlessOptions(name string, value field) bool {
	words := strings.Fields(value.text)
	switch name {
	case "LESS":
		return !slices.ContainsFunc(words, func(word string) bool { return strings.Trim(word, "-FRXSiIMNqsgJwWeEx0123456789") != "" })
	case "NODE_OPTIONS":
		return !slices.ContainsFunc(words, func(word string) bool {
			option, _, _ := strings.Cut(word, "=")
			return !slices.Contains(strings.Fields(`--max-old-space-size --max-semi-space-size --max-http-header-size --no-warnings --enable-source-maps
				--trace-warnings --trace-deprecation --no-deprecation --openssl-legacy-provider --experimental-vm-modules --dns-result-order
				--stack-trace-limit --unhandled-rejections --throw-deprecation --preserve-symlinks`), option)
		})
	}
	return false
}

// isFollowedBy reports whether the current statement continues, after its
// assignments, with one of the texts: IFS= read -r line is harmless.
func (s *shellText) isFollowedBy(texts ...string) bool {
	return slices.ContainsFunc(texts, func(word string) bool { return strings.HasPrefix(s.afterAssignments, word) })
}

// isHarmlessGitVariable reports whether a variable with the prefix GIT_ neither
// runs code nor names code to run.
func isHarmlessGitVariable(name string) bool {
	return slices.Contains(harmlessGitVariables, name) || strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_") ||
		strings.HasPrefix(name, "GIT_TRACE") && name != "GIT_TRACE2"
}

// isHarmlessPath reports whether a value of PATH has only system directories
// and unknown text between colons, which represents the old $PATH.
func isHarmlessPath(value string) bool {
	for _, dir := range strings.Split(value, ":") {
		if dir != unknownText && !isSystemDir(dir) {
			return false
		}
	}
	return true
}
