package glob

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// scanResult is the result of scanning a pattern.
type scanResult struct {
	// plainPattern is the pattern with its classes, and its braces without a comma, as
	// plain characters.
	plainPattern  string
	reason        string // why it is not a valid glob; "" if it is
	fromError     string // the pattern from the error on
	classHasSlash bool   // a class contains a slash: as in bash, it is not a class, and only plainPattern counts
}

// patternError returns a BAD_PATTERN error with the position in pattern, the
// text given to Compile. It returns nil if the pattern is valid.
func (r scanResult) patternError(pattern string) error {
	if r.reason == "" {
		return nil
	}
	given := ToSlash(pattern)
	at := strings.LastIndex(given, r.fromError)
	if at < 0 {
		at = len(given) - 1
	}
	pos := charPosition(given, at)
	return toolerr.New(toolerr.BadPattern, "invalid pattern %q at character %d: %s", pattern, pos, r.reason).With("position", pos)
}

// scanPattern finds out whether a pattern is valid. It agrees with
// doublestar.ValidatePattern, except for classes, which have bash's syntax.
func scanPattern(text string) scanResult {
	s := scanner{text: text, braces: pairBraces(text)}
	for s.at < len(text) {
		s.scanNext()
	}
	return scanResult{plainPattern: s.plain.String(), reason: s.reason, fromError: s.fromError, classHasSlash: s.classHasSlash}
}

// scanner is the state of scanPattern; its fields become those of scanResult.
type scanner struct {
	text          string
	at            int
	plain         strings.Builder
	braces        map[int]brace
	reason        string
	fromError     string
	classHasSlash bool
}

// recordError records the first error, at the index at.
func (s *scanner) recordError(at int, reason string) {
	if s.reason == "" {
		s.reason, s.fromError = reason, s.text[at:]
	}
}

// writeLiteral adds text, without special meaning, to the plain pattern.
func (s *scanner) writeLiteral(text string) { s.plain.WriteString(QuoteMeta(text)) }

// scanNext scans one character, escape, class or brace.
func (s *scanner) scanNext() {
	start := s.at
	switch c := s.text[start]; c {
	case '\\':
		if start+1 == len(s.text) {
			s.recordError(start, `trailing backslash (write \\ for a literal one)`)
			s.writeLiteral(`\`)
			s.at++
			return
		}
		s.plain.WriteString(s.text[start : start+2])
		s.at += 2
	case '[':
		end, reason := classEnd(s.text, start)
		if reason != "" {
			s.recordError(start, reason)
		}
		s.classHasSlash = s.classHasSlash || strings.Contains(s.text[start:end], "/")
		s.writeLiteral(s.text[start:end])
		s.at = end
	case '{', '}':
		b, paired := s.braces[start]
		switch {
		case !paired && c == '{':
			s.recordError(start, `unclosed "{" (write \{ for a literal brace)`)
		case !paired:
			s.recordError(start, `unmatched "}" (write \} for a literal brace)`)
		}
		if paired && b.hasAlternatives {
			s.plain.WriteByte(c)
		} else {
			s.writeLiteral(string(c))
		}
		s.at++
	default:
		s.plain.WriteByte(c)
		s.at++
	}
}

// classEnd returns the index after the class that begins at text[start]. reason
// says why it is not a class; "" if it is.
func classEnd(text string, start int) (end int, reason string) {
	_, end, reason = readClass(text, start, false)
	return end, reason
}
