package projectfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// judged are files that developers and their commands write every day, and in
// which a few settings make a program run another one.
var judged = map[string]func(line string) bool{
	".npmrc":              npmRuns,
	".tool-versions":      asdfRuns,
	"rust-toolchain":      rustupRuns,
	"rust-toolchain.toml": rustupRuns,
}

// IsJudged reports whether files of this name are protected by their content,
// see Runs, in any letter case.
func IsJudged(name string) bool {
	_, ok := judged[strings.ToLower(name)]
	return ok
}

// Runs lists the lines of a file of the given name that name a program to be
// run, as soon as somebody uses npm, rustup, asdf or mise in its directory. It
// returns nil for a name that IsJudged does not know.
func Runs(name string, content []byte) (lines []string) {
	runs := judged[strings.ToLower(name)]
	if runs == nil {
		return nil
	}
	for line := range strings.FieldsFuncSeq(string(content), isLineEnd) {
		if line = strings.TrimSpace(line); runs(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// WithoutLines returns content without the given lines.
func WithoutLines(content []byte, lines []string) (rest []byte) {
	for line := range strings.SplitAfterSeq(strings.ReplaceAll(string(content), "\r", "\n"), "\n") {
		if !slices.Contains(lines, strings.TrimSpace(line)) {
			rest = append(rest, line...)
		}
	}
	return rest
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' }

// npmPrograms are the settings of npm whose value is a program or leads to
// other settings.
var npmPrograms = []string{"init-module", "init.module", "git", "editor", "viewer", "shell", "script-shell", "browser", "node-gyp", "python", "userconfig", "globalconfig"}

// npmRuns reports whether a line of .npmrc is one of npmPrograms. A key with a
// variable, which npm replaces, may be any.
func npmRuns(line string) bool {
	if line == "" || line[0] == ';' || line[0] == '#' {
		return false
	}
	key, _, _ := strings.Cut(line, "=")
	key = strings.TrimSuffix(strings.Trim(strings.TrimSpace(key), `"'`), "[]")
	return strings.ContainsAny(key, `$\`) || slices.ContainsFunc(npmPrograms, func(name string) bool { return pathname.EqualFold(key, name) })
}

// rustupRuns reports whether a line of rust-toolchain.toml may name the
// directory of the toolchain. Escapes may spell any key.
func rustupRuns(line string) bool {
	return !strings.HasPrefix(line, "#") && rustupPath.MatchString(line)
}

var rustupPath = regexp.MustCompile(`\bpath\b|\\`)

// asdfRuns reports whether a line of .tool-versions names a directory of
// programs, or is a template, in which mise runs commands.
func asdfRuns(line string) bool {
	return strings.Contains(line, "{{") || strings.Contains(line, "{%") || slices.ContainsFunc(strings.Fields(line), func(field string) bool { return strings.HasPrefix(field, "path:") })
}
