package upstream

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// errorPatterns matches the lines of standard error that say why a program failed.
type errorPatterns struct {
	named *regexp.Regexp // "TypeError: …", "panic: …", "error: …"
	npm   *regexp.Regexp // npm's own lines, without their prefix in the submatch
	minor *regexp.Regexp // those of npm's lines that only describe another one
}

// knownErrors compiles the expressions when a server fails for the first time.
var knownErrors = sync.OnceValue(func() errorPatterns {
	return errorPatterns{
		named: regexp.MustCompile(`(?i)^(\S+\s+){0,3}\[?([\w.]*(error|exception)|panic|fatal)\]?( \[?[\w-]+\]?){0,3}:\s*\S`),
		npm:   regexp.MustCompile(`^npm (?:error|ERR!)(?:\s+(?:\d{3}|E[A-Z0-9]+|enoent))?\s+(\S.*)$`),
		minor: regexp.MustCompile(`^(code|syscall|path|errno|dest|type|cwd|command|signal|node|npm|A complete log|Note that|Note)\b`),
	}
})

// Cause returns the line of a program's standard error that says why it failed,
// shortened, or "" if it wrote nothing: npm's first message, the last line of a Python
// traceback, the last line that names an error, or else the last line. Lines after it
// contain the stack or the path of a log.
func Cause(text string) string {
	forms := knownErrors()
	named := ""
	lines := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	for _, line := range lines {
		line = strings.TrimRight(line, "\r")
		if m := forms.npm.FindStringSubmatch(line); m != nil && !forms.minor.MatchString(m[1]) {
			return lastLine(line)
		}
		if forms.named.MatchString(line) {
			named = line
		}
	}
	if named == "" || slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Traceback (most recent call last)") }) {
		return lastLine(text)
	}
	return lastLine(named)
}

// strayText returns the part of an error message that quotes the first line on standard
// output that was not a message; "" if every line was one.
func (c *conn) strayText() string {
	if line := c.firstStray.Load(); line != nil {
		return `; on its standard output, where only messages are allowed: "` + *line + `"`
	}
	return ""
}

// countStray counts a line on standard output that is not a message, and keeps the
// first one.
func (c *conn) countStray(line []byte) {
	if c.noise.Add(1) > 1 {
		return
	}
	first := lastLine(c.cfg.redact(string(bytes.ToValidUTF8(line[:min(len(line), 1000)], []byte("\uFFFD")))))
	c.firstStray.Store(&first)
}
