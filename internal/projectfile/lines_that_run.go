package projectfile

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// lineJudges maps the names of files that developers and their commands write
// every day, and whose settings can make a program run another one, to
// functions that report whether a line is such a setting.
var lineJudges = map[string]func(line string) bool{
	".merlin":             merlinLineRuns,
	".npmrc":              npmLineRuns,
	".tool-versions":      asdfLineRuns,
	"rust-toolchain":      rustupLineRuns,
	"rust-toolchain.toml": rustupLineRuns,
}

// IsJudgedByContent reports whether files of this name are protected only if
// LinesThatRun lists one of their lines. It ignores letter case.
func IsJudgedByContent(name string) bool {
	_, ok := lineJudges[strings.ToLower(name)]
	return ok
}

// LinesThatRun lists the lines of a file of the given name that name a program to be
// run, as soon as somebody uses npm, rustup, asdf, mise or Merlin in its directory. It
// returns nil for a name that IsJudgedByContent does not know.
func LinesThatRun(name string, content []byte) (lines []string) {
	runs := lineJudges[strings.ToLower(name)]
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

// WithoutLines returns content without the given lines and their line ends. Other line
// ends stay as they are.
func WithoutLines(content []byte, lines []string) (rest []byte) {
	for text := string(content); text != ""; {
		end := len(text)
		if i := strings.IndexFunc(text, isLineEnd); i >= 0 {
			end = i + 1
			if strings.HasPrefix(text[i:], "\r\n") {
				end++
			}
		}
		if !slices.Contains(lines, strings.TrimSpace(text[:end])) {
			rest = append(rest, text[:end]...)
		}
		text = text[end:]
	}
	return rest
}

// isLineEnd reports whether r ends a line: LF or CR.
func isLineEnd(r rune) bool { return r == '\n' || r == '\r' }

// npmPrograms are the settings of npm, and of node-gyp, which npm starts, whose
// value is a program or leads to other settings or to code.
var npmPrograms = []string{
	"init-module", "init.module", "git", "editor", "viewer", "shell", "script-shell", "browser", "node-gyp", "python", "userconfig", "globalconfig",
	"onload-script", "call", "package", "make", "nodedir", "devdir",
}

// npmLineRuns reports whether a line of .npmrc is one of npmPrograms, or sets
// node-options that may load code. It takes more keys for these settings than
// npm does: npm ends a key at a ; or #, removes U+FEFF and other blanks, and
// reads a quoted key as JSON, of which an array counts, too. A key with a
// variable, which npm replaces, or with an escape may be any.
func npmLineRuns(line string) bool {
	line = strings.TrimFunc(line, isJSSpace)
	if line == "" || line[0] == ';' || line[0] == '#' {
		return false
	}
	key, value, hasValue := strings.Cut(line, "=")
	if strings.ContainsAny(key, `$\`) {
		return true
	}
	if end := strings.IndexAny(key, ";#"); end >= 0 {
		key = key[:end]
	}
	key = strings.TrimFunc(key, func(r rune) bool { return r < utf8.RuneSelf && !isLetter(byte(r)) || isJSSpace(r) })
	if pathname.EqualFold(key, "node-options") {
		value = strings.TrimFunc(value, func(r rune) bool { return isJSSpace(r) || r == '"' || r == '\'' })
		return !hasValue || !plainNodeOptions().MatchString(value)
	}
	return slices.ContainsFunc(npmPrograms, func(name string) bool { return pathname.EqualFold(key, name) })
}

// isJSSpace reports whether String.trim of JavaScript removes a character. It
// also returns true for U+0085, which trim keeps.
func isJSSpace(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }

// isLetter reports whether the byte b is an ASCII letter.
func isLetter(b byte) bool { return 'a' <= pathname.Lower(b) && pathname.Lower(b) <= 'z' }

// plainNodeOptions matches options of node that are often set and name no file.
// Many others do: modules, settings of OpenSSL, files to write.
var plainNodeOptions = lazyregexp.New(`^(--(max[-_]old[-_]space[-_]size|max[-_]semi[-_]space[-_]size|stack-trace-limit|max-http-header-size)[= ]\d+(\s+|$)` +
	`|--(no-warnings|no-deprecation|trace-warnings|trace-deprecation|trace-uncaught|openssl-legacy-provider|enable-source-maps|experimental-vm-modules|use-system-ca)(\s+|$))*$`)

// rustupLineRuns reports whether a line of rust-toolchain.toml may name the
// directory of the toolchain. Escapes may spell any key.
func rustupLineRuns(line string) bool {
	return !strings.HasPrefix(line, "#") && rustupPath().MatchString(line)
}

// rustupPath matches a line that may set the key path.
var rustupPath = lazyregexp.New(`\bpath\b|\\`)

// asdfLineRuns reports whether a line of .tool-versions names a directory of
// programs, or is a template, in which mise runs commands.
func asdfLineRuns(line string) bool {
	return strings.Contains(line, "{{") || strings.Contains(line, "{%") || slices.ContainsFunc(strings.Fields(line), func(field string) bool { return strings.HasPrefix(field, "path:") })
}

// merlinLineRuns reports whether a line of .merlin, which editors read for OCaml,
// names a preprocessor, or settings of findlib, which name preprocessors.
func merlinLineRuns(line string) bool {
	return !strings.HasPrefix(line, "#") && merlinProgram().MatchString(line)
}

// merlinProgram matches a line that names a preprocessor or settings of
// findlib.
var merlinProgram = lazyregexp.New(`-ppx?\b|^(READER|PP|FINDLIB)`)
