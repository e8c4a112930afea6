package policy

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// commandVariables hold commands that programs run.
var commandVariables = strings.Fields(`PAGER MANPAGER GIT_PAGER SYSTEMD_PAGER BAT_PAGER EDITOR VISUAL FCEDIT GIT_EDITOR GIT_SEQUENCE_EDITOR
	SUDO_EDITOR BROWSER MANROFFOPT LESSOPEN LESSCLOSE GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS
	GIT_PROXY_COMMAND RSYNC_RSH CVS_RSH SVN_SSH SHELL RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER MAKESHELL CONFIG_SHELL TAR_RSH`)

// steeringVariables change which code runs, or what the words of a command
// mean, in ways that a value does not show.
var steeringVariables = strings.Fields(`BASH_ENV ENV PS0 PS1 PS2 PS4 PROMPT_COMMAND IFS BASH_CMDS BASH_ALIASES SHELLOPTS BASHOPTS ZDOTDIR
	PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONINSPECT PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH
	JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH LUA_INIT TAR_OPTIONS MAKEFLAGS GCONV_PATH GIO_MODULE_DIR
	EXECIGNORE VIMINIT EXINIT GVIMINIT AWKPATH AWKLIBPATH LESS OPENSSL_CONF OPENSSL_ENGINES`)

// harmlessGit are the variables of git that neither run nor redirect code.
var harmlessGit = strings.Fields(`GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_TERMINAL_PROMPT GIT_MERGE_AUTOEDIT GIT_OPTIONAL_LOCKS
	GIT_CEILING_DIRECTORIES GIT_LITERAL_PATHSPECS GIT_FLUSH GIT_SSL_NO_VERIFY GIT_CONFIG_NOSYSTEM GIT_ADVICE GIT_DEFAULT_HASH GIT_REFLOG_ACTION
	GIT_LFS_SKIP_SMUDGE GIT_COMMIT GIT_BRANCH GIT_TAG GIT_SHA GIT_HASH GIT_REV GIT_VERSION GIT_URL GIT_REPO GIT_ROOT`)

// assignment judges one NAME=VALUE, before a command or alone.
func (s *scope) assignment(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	if a.Index != nil {
		s.subscript(a.Index)
	}
	s.at = s.source(a)
	name := a.Name.Value
	if a.Array != nil || a.Index != nil || a.Append {
		s.environment(name, field{text: anything}, "")
		s.elements(a)
		return
	}
	for _, reading := range s.variants(a.Value) {
		s.environment(name, s.textOf(a.Value, reading), "")
	}
}

// elements judges the values that an assignment gives to single elements.
func (s *scope) elements(a *syntax.Assign) {
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
		for _, reading := range s.variants(word) {
			s.renamed(a.Name.Value, s.textOf(word, reading))
		}
	}
}

// renamed judges what bash runs under another name once it is in the table:
// BASH_CMDS has the paths of programs, as hash -p sets them, and BASH_ALIASES
// has shell code.
func (s *scope) renamed(table string, value field) {
	later := field{text: anything, many: true} // the arguments
	switch table {
	case "BASH_CMDS":
		s.simple([]field{value, later}, nil, false)
	case "BASH_ALIASES":
		s.nested(joined([]field{value, later}), nil, s.zero)
	}
}

// environment judges a value that a variable, or the element name[…] of one,
// gets by an assignment or by the builtin or program named.
func (s *scope) environment(name string, value field, by string) {
	name, _, _ = strings.Cut(name, "[")
	if value.text != anything {
		s.renamed(name, value)
	}
	switch {
	case slices.Contains(commandVariables, name):
		s.commandValue(value, name)
	case name == "PATH":
		if !plainPath(value.text) {
			added := slices.Contains(strings.Split(value.text, ":"), anything)
			s.doubt(!added, "PATH decides which programs run")
		}
	case name == "IFS" && by == "" && (s.before("read ", "mapfile ", "readarray ") || strings.Trim(value.text, " \t\n") == ""):
	case harmlessSetting(name, value):
	case name == "PYTHONPATH" || name == "NODE_PATH":
		s.doubt(value.text == anything, "%s names directories of code that programs run", name)
	case name == "GOFLAGS":
		if value.unknown() || strings.Contains(value.text, "exec") {
			s.doubt(true, "GOFLAGS may name a program to run")
		}
	case slices.Contains(steeringVariables, name), strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DYLD_"),
		strings.HasPrefix(name, "BASH_FUNC_"), strings.HasPrefix(name, "GIT_") && !gitHarmless(name):
		if value.text != "" || name == "IFS" && by != "" {
			s.doubt(true, "%s changes what other commands run", name)
		}
	}
}

// harmlessSetting reports whether options in a variable run nothing.
func harmlessSetting(name string, value field) bool {
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

// before reports whether one of the words follows the assignment in its statement:
// IFS= read -r line is harmless.
func (s *scope) before(words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(s.follow, word) })
}

func gitHarmless(name string) bool {
	return slices.Contains(harmlessGit, name) || strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_") ||
		strings.HasPrefix(name, "GIT_TRACE") && name != "GIT_TRACE2"
}

// plainPath reports whether a PATH holds the old one and the system's
// directories only. The old one is unknown text between colons.
func plainPath(value string) bool {
	for _, dir := range strings.Split(value, ":") {
		if dir != anything && !systemDir(dir) {
			return false
		}
	}
	return true
}

// declaration judges declare, export, local and their kin: words that are
// put together at run time may assign to anything.
func (s *scope) declaration(d *syntax.DeclClause) {
	s.at = s.source(d)
	integer, list := false, false
	for _, a := range d.Args {
		if !a.Naked && a.Array == nil {
			for _, reading := range s.variants(a.Value) {
				s.compound(d.Variant.Value, s.textOf(a.Value, reading), list)
			}
		}
		if !a.Naked && integer {
			s.arithmeticVariable(a.Name.Value)
		}
		if a.Naked && a.Name != nil && integer {
			s.arithmeticVariable(a.Name.Value)
		}
		if !a.Naked || a.Value == nil {
			continue
		}
		option := s.textOf(a.Value, nil).text
		list = list || strings.HasPrefix(option, "-") && strings.ContainsAny(option, "aA"+anything)
		if strings.HasPrefix(option, "-") && d.Variant.Value != "export" && d.Variant.Value != "readonly" {
			integer = integer || strings.Contains(option, "i")
			if strings.Contains(option, "n") {
				s.doubt(true, "%s %s makes one variable an alias of another", d.Variant.Value, option)
			}
		}
		for _, reading := range s.variants(a.Value) {
			s.variableName(d.Variant.Value, s.textOf(a.Value, reading))
		}
	}
}

// compound judges a value that declare and its kin take for the elements of
// an array, and expand once more: a='($(code))'; declare -a b=$a.
func (s *scope) compound(builtin string, value field, list bool) {
	runs := strings.HasPrefix(value.text, "(") && strings.ContainsAny(value.text, "$`"+anything)
	if runs || list && strings.HasPrefix(value.text, anything) {
		s.doubt(true, "%s expands the elements in %s once more", builtin, excerpt(strings.ReplaceAll(value.text, anything, "…")))
	}
}

// loop judges the values that for and select give to their variable.
func (s *scope) loop(iter *syntax.WordIter) {
	for _, reading := range s.variants(iter.Items...) {
		for _, value := range s.fieldsOf(iter.Items, reading) {
			s.environment(iter.Name.Value, value, "for")
		}
	}
}

// expansion judges what assigns, ${a:=value}, and what evaluates a value as
// code: ${a@P}, and ${!a} where a may hold a subscript.
func (s *scope) expansion(p *syntax.ParamExp) {
	if p.Exp != nil && p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		for _, reading := range s.variants(p.Exp.Word) {
			s.environment(p.Param.Value, s.textOf(p.Exp.Word, reading), ":=")
		}
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && p.Exp.Word.Lit() == "P" {
		s.at = s.source(p)
		s.doubt(true, "${…@P} runs the commands in a value")
	}
	if p.Excl && p.Names == 0 && p.Index == nil && p.Param != nil {
		s.at = s.source(p)
		for _, option := range s.vars.options(p.Param.Value, false) {
			if option.state != valueKnown || !syntax.ValidName(option.text) {
				s.doubt(true, "${!…} evaluates a name that is not known")
				break
			}
		}
	}
	if p.Index != nil {
		s.subscript(p.Index)
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				s.subscript(x)
			}
		}
	}
}

// arithmetic judges the variables in arithmetic: bash evaluates their values
// again, and a value like x[$(code)] runs the code.
func (s *scope) arithmetic(node syntax.Node) {
	s.at = s.source(node)
	switch node := node.(type) {
	case *syntax.ArithmExp:
		s.subscript(node.X)
	case *syntax.ArithmCmd:
		s.subscript(node.X)
	case *syntax.LetClause:
		for _, x := range node.Exprs {
			s.subscript(x)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{node.Init, node.Cond, node.Post} {
			if x != nil {
				s.subscript(x)
			}
		}
	case *syntax.TestClause:
		syntax.Walk(node.X, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.BinaryTest:
				switch n.Op {
				case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
					s.testOperand(n.X)
					s.testOperand(n.Y)
				}
			case *syntax.UnaryTest:
				if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
					s.testOperand(n.X)
				}
			}
			return true
		})
	}
}

func (s *scope) testOperand(x syntax.TestExpr) {
	if word, ok := x.(*syntax.Word); ok {
		s.subscript(word)
	}
}

// subscript judges one arithmetic expression.
func (s *scope) subscript(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Word:
			if name := node.Lit(); name != "" {
				if syntax.ValidName(name) {
					s.arithmeticVariable(name)
				}
				return false
			}
			for _, part := range node.Parts {
				if quoted, ok := part.(*syntax.SglQuoted); ok {
					s.arithmeticText(field{text: quoted.Value})
				}
			}
		case *syntax.ParamExp:
			if node.Param != nil && !node.Length {
				s.arithmeticVariable(node.Param.Value)
			}
		case *syntax.CmdSubst:
			return false // its output may be anything; so is said of variables only
		}
		return true
	})
}

// arithmeticVariable judges a variable whose value is evaluated, and with it
// the variables that the value names. One that the command does not assign is
// taken to be a number.
func (s *scope) arithmeticVariable(name string) {
	for seen, left := map[string]bool{}, []string{name}; len(left) > 0; left = left[1:] {
		v := s.vars.known[left[0]]
		if v == nil || seen[left[0]] {
			continue
		}
		seen[left[0]] = true
		if v.open {
			s.doubt(strings.Contains(s.text, "[$(") || strings.Contains(s.text, "[`"), "arithmetic evaluates $%s, whose value is not known", excerpt(left[0]))
		}
		for _, value := range v.values {
			s.arithmeticText(field{text: value})
			left = append(left, strings.FieldsFunc(value, func(r rune) bool { return r > unicode.MaxASCII || !nameByte(byte(r)) })...)
		}
	}
}

func nameByte(c byte) bool { return letter(c) || c >= '0' && c <= '9' }

func (s *scope) arithmeticText(f field) {
	if strings.ContainsAny(f.text, "$`[\x00") {
		s.doubt(true, "arithmetic evaluates the text %s", excerpt(strings.ReplaceAll(f.text, anything, "…")))
	}
}
