package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Programs that get the names of files in the tree are taken to get no
// options by them, as those that a glob finds.

// recordReaderOfFileNames records that the right side of a pipe reads names of
// files, if its left side prints only those.
func (s *shellText) recordReaderOfFileNames(node *syntax.BinaryCmd) {
	if node.Op != syntax.Pipe || !s.printsFileNames(node.X) {
		return
	}
	if s.readFileNames == nil {
		s.readFileNames = map[*syntax.Stmt]bool{}
	}
	s.readFileNames[node.Y] = true
}

// maxFilters bounds the commands of a pipeline through which file names are
// followed.
const maxFilters = 8

// printsFileNames reports whether a statement's output is names of files: it is
// a program that lists them, perhaps with filters after it. It returns false if
// that is not sure.
func (s *shellText) printsFileNames(stmt *syntax.Stmt) bool {
	for range maxFilters {
		if len(stmt.Redirs) > 0 {
			return false
		}
		if pipe, ok := stmt.Cmd.(*syntax.BinaryCmd); ok {
			if pipe.Op != syntax.Pipe || !onlySelectsLines(s.simpleCommandWords(pipe.Y)) {
				return false
			}
			stmt = pipe.X
			continue
		}
		words := s.simpleCommandWords(stmt)
		return len(words) > 0 && onlyPrintsFileNames(words)
	}
	return false
}

// simpleCommandWords returns the expanded words of a simple command; nil for
// another statement or one with assignments or redirections.
func (s *shellText) simpleCommandWords(stmt *syntax.Stmt) []field {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 || len(stmt.Redirs) > 0 {
		return nil
	}
	return s.expandFields(call.Args, nil)
}

// lineSelectors lists the options of programs with which they only select or sort
// lines: letters without a value, letters with a number, and long options.
var lineSelectors = map[string]struct{ flags, numbers, long string }{
	"head": {"qv", "n", "lines"},
	"tail": {"qv", "n", "lines"},
	"sort": {"bdfghinrRuVs", "k", "reverse unique numeric-sort version-sort human-numeric-sort key"},
	"uniq": {"dui", "fsw", "unique repeated ignore-case"},
	"tac":  {},
	"shuf": {"", "n", "head-count"},
}

// onlySelectsLines reports whether words are a command that prints lines of its
// standard input, unchanged, and nothing else: head, sort, grep with one
// pattern. It returns false if that is not sure.
func onlySelectsLines(words []field) bool {
	if len(words) == 0 {
		return false
	}
	_, base := splitProgram(words[0].text)
	switch base {
	case "head", "tail", "sort", "uniq", "tac", "shuf":
		return onlyLineSelectors(base, words[1:])
	case "grep", "egrep", "fgrep":
		operands := 0
		for _, f := range words[1:] {
			switch {
			case f.maybeMany, strings.HasPrefix(f.text, "--"), len(f.text) > 1 && f.text[0] == '-' && strings.Trim(f.text, "-viEFwx") != "":
				return false
			case f.text != "" && f.text[0] != '-':
				operands++
			}
		}
		return operands == 1
	}
	return false
}

// onlyLineSelectors reports whether all arguments are options of lineSelectors for the
// program. An operand would be the name of a file to read, or a line to print.
func onlyLineSelectors(program string, args []field) bool {
	known := lineSelectors[program]
	for i := 0; i < len(args); i++ {
		text := args[i].text
		if args[i].hasUnknown() || len(text) < 2 || text[0] != '-' {
			return false
		}
		if name, ok := strings.CutPrefix(text, "--"); ok {
			name, number, _ := strings.Cut(name, "=")
			if !slices.Contains(strings.Fields(known.long), name) || !isNumberOption(number) {
				return false
			}
			continue
		}
		if isDigits(text[1:]) && (program == "head" || program == "tail") {
			continue
		}
		rest := strings.TrimLeft(text[1:], known.flags)
		if rest == "" {
			continue
		}
		if strings.IndexByte(known.numbers, rest[0]) < 0 {
			return false
		}
		if number := rest[1:]; number != "" {
			if !isNumberOption(number) {
				return false
			}
			continue
		}
		i++
		if i == len(args) || args[i].hasUnknown() || args[i].text == "" || !isNumberOption(args[i].text) {
			return false
		}
	}
	return true
}

// isNumberOption reports whether text is the value of an option with a number: 5, +5,
// -5, or a key of sort such as 2,3nr. It returns true for "".
func isNumberOption(text string) bool { return strings.Trim(text, "0123456789,.+-bdfghinrRVM") == "" }

// isDigits reports whether text has no other characters than ASCII digits. It
// returns true for "".
func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// onlyPrintsFileNames reports whether a command prints only names of files, and
// no text from its arguments. It returns false if that is not sure.
func onlyPrintsFileNames(words []field) bool {
	args := words[1:]
	for _, f := range args {
		for _, sign := range []string{"printf", "format", "prefix", "label", "-exec", "-ok", "-ls", "-x", "-X", "separator", "-H", "-r=", "replace"} {
			if strings.Contains(f.text, sign) {
				return false
			}
		}
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(f field) bool { return f.is(options...) })
	}
	_, base := splitProgram(words[0].text)
	switch base {
	case "find", "gfind":
		return findNamesAreNoOptions(args)
	case "ls", "fd", "fdfind":
		return true
	case "rg", "grep", "ag":
		return has("-l", "-rl", "-lr", "-L", "--files", "--files-with-matches", "-Rl", "-rlZ", "-lZ", "-il", "-rn") && !has("-rn")
	case "git":
		at := countGitGlobalArgs(args)
		return at < len(args) && (args[at].is("ls-files") || args[at].is("diff", "diff-index", "diff-tree") && has("--name-only"))
	}
	return false
}

// findNamesAreNoOptions reports whether no name that find prints can be taken
// for an option: find has only known starting points, and the names begin with
// them.
func findNamesAreNoOptions(args []field) bool {
	for len(args) > 0 && args[0].is("-H", "-L", "-P") {
		args = args[1:]
	}
	for _, f := range args {
		if f.text != "" && strings.ContainsAny(f.text[:1], "-(!") && !f.maybeMany {
			return true
		}
		if f.text == "" || f.text[0] == 0 && !strings.HasPrefix(f.text, unknownText+"/") && !f.fromGlob {
			return false
		}
	}
	return true
}
