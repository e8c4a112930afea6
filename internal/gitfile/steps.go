package gitfile

import (
	"bytes"
	"slices"
	"strings"
)

// Steps lists the commands that the steps of an unfinished rebase run: the
// arguments of exec in git-rebase-todo, in order (git-rebase(1), "exec").
func Steps(todo []byte) (commands []string) {
	for line := range bytes.Lines(todo) {
		if command, ok := execStep(line); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// StepsWithout returns the steps of a rebase without those that run a
// command that is not in allowed. All other bytes are kept.
func StepsWithout(todo []byte, allowed []string) (rest []byte) {
	for line := range bytes.Lines(todo) {
		if command, ok := execStep(line); !ok || slices.Contains(allowed, command) {
			rest = append(rest, line...)
		}
	}
	return rest
}

// StrategyRuns reports whether the options of an unfinished operation make git
// run a program by path: the name of a merge strategy is part of a program's
// name. The options are the content of the file with the given name: strategy
// of a rebase, or opts of a sequencer. ok is false for a file that git would
// not understand.
func StrategyRuns(name string, content []byte) (runs, ok bool) {
	if name == "strategy" { // of a rebase
		return bytes.ContainsAny(content, `/\`), true
	}
	values, ok := Values(content) // sequencer/opts
	return slices.ContainsFunc(values, func(setting string) bool {
		strategy, found := strings.CutPrefix(setting, "options.strategy=")
		return found && strings.ContainsAny(strategy, `/\`)
	}), ok
}

// execStep returns the command of a line with an exec, as parse_insn_line of
// git's sequencer.c reads it.
func execStep(line []byte) (command string, ok bool) {
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
