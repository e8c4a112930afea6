package gitfile

import (
	"bytes"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// ExecSteps lists the commands that the steps of an unfinished rebase run: the
// arguments of exec in git-rebase-todo, in order (git-rebase(1), "exec").
func ExecSteps(todo []byte) (commands []string) {
	for line := range bytes.Lines(todo) {
		if command, ok := parseExecStep(line); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// KeepAllowedSteps returns the steps of a rebase without those that run a
// command that is not in allowed. All other bytes are kept.
func KeepAllowedSteps(todo []byte, allowed []string) (rest []byte) {
	for line := range bytes.Lines(todo) {
		if command, ok := parseExecStep(line); !ok || slices.Contains(allowed, command) {
			rest = append(rest, line...)
		}
	}
	return rest
}

// optionFiles are the files with options of an unfinished operation: of a rebase,
// a sequencer, and git am. The last four hold the number of the current step and
// of all steps.
var optionFiles = []string{"strategy", "strategy_opts", "opts", "apply-opt", "msgnum", "end", "next", "last"}

// IsOptionsFile reports whether a file of this name, in rebase-merge, rebase-apply or
// sequencer of a repository, holds options that OptionsMayRun judges.
func IsOptionsFile(name string) bool { return slices.Contains(optionFiles, name) }

// OptionsMayRun reports whether the options of an unfinished operation may make git
// run a program or write elsewhere. A merge strategy is part of a program's
// name, its options become those of git read-tree (--index-output=FILE), and git
// apply takes a directory to write to. The options are the content of the file with
// the given name: strategy and strategy_opts of a rebase, opts of a sequencer, or
// apply-opt of git am. The files with the number of a step must hold a number:
// git-prompt.sh puts their first line into PS1, in which bash replaces $(COMMAND).
// ok is false for a file that git would not understand.
func OptionsMayRun(name string, content []byte) (runs, ok bool) {
	switch name {
	case "strategy":
		text := strings.TrimSpace(string(content))
		return text != "" && !isStrategy(text), true
	case "strategy_opts":
		options := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(string(content)))
		return slices.ContainsFunc(options, func(option string) bool {
			return !strategyOption().MatchString(strings.TrimPrefix(option, "--"))
		}), true
	case "apply-opt":
		return !applyOptions().Match(content), true
	case "msgnum", "end", "next", "last":
		return !stepNumber().Match(content), true
	}
	values, ok := AllSettings(content)
	return slices.ContainsFunc(values, func(setting string) bool {
		if option, found := strings.CutPrefix(setting, "options.strategy-option="); found {
			return !strategyOption().MatchString(option)
		}
		strategy, found := strings.CutPrefix(setting, "options.strategy=")
		return found && strategy != "" && !isStrategy(strategy)
	}), ok
}

// isStrategy reports whether name is one of git's own merge strategies.
func isStrategy(name string) bool {
	return slices.Contains([]string{"ort", "ours", "recursive", "resolve", "octopus", "subtree"}, name)
}

// strategyOption matches an option of a merge strategy (git-merge(1)), without
// dashes.
var strategyOption = lazyregexp.New(`^(ours|theirs|patience|histogram|minimal|diff-algorithm=[a-z]+|ignore-(space-change|all-space|space-at-eol|cr-at-eol)` +
	`|(no-)?renormalize|no-renames|find-renames(=[0-9]+%?)?|rename-threshold=[0-9]+%?|subtree(=[^\s\\]*)?)$`)

// stepNumber matches the number of a step, or an empty file.
var stepNumber = lazyregexp.New(`^[0-9]*\s*$`)

// applyOptions matches quoted options of git apply that name no path.
var applyOptions = lazyregexp.New(`^\s*('(--whitespace=[a-z-]+|-[Cp][0-9]+|--ignore-whitespace|--ignore-space-change|--reject|--3way)'(\s+|$))*$`)

// parseExecStep returns the command of a line with an exec, as parse_insn_line of git's
// sequencer.c reads it. ok is false for a line with another command.
func parseExecStep(line []byte) (command string, ok bool) {
	text := strings.TrimLeft(string(line), " \t")
	end := strings.IndexAny(text, " \t\r\n\x00")
	if end < 0 {
		end = len(text)
	}
	if word := text[:end]; word != "exec" && word != "x" {
		return "", false
	}
	return strings.Trim(text[end:], " \t\r\n"), true
}
