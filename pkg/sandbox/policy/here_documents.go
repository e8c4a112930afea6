package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// stdinText is the text of a command's standard input, if the shell code itself
// contains it.
type stdinText struct {
	text  field
	given bool // by a here-document or here-string; otherwise text is empty
}

// hereDocument returns the standard input that the redirections give by a
// here-document or here-string. Of several, the last counts; the result is
// empty if that is another redirection of the input.
func (s *shellText) hereDocument(redirects []*syntax.Redirect) stdinText {
	var in stdinText
	for _, redirect := range redirects {
		switch {
		case redirect.N != nil && redirect.N.Value != "0":
		case redirect.Op == syntax.WordHdoc:
			in = stdinText{text: s.constantText(redirect.Word, unsplit), given: true}
		case redirect.Hdoc != nil:
			if isQuotedDelimiter(redirect.Word) {
				in = stdinText{text: field{text: literalText(redirect.Hdoc)}, given: true}
				continue
			}
			in = stdinText{text: s.constantText(redirect.Hdoc, hereQuoted), given: true}
		case redirect.Op == syntax.RdrIn || redirect.Op == syntax.RdrInOut || redirect.Op == syntax.DplIn:
			in = stdinText{}
		}
	}
	return in
}

// constantText expands a word as a single field. If its variables allow several
// readings, it returns unknownText.
func (s *shellText) constantText(word *syntax.Word, q quoting) field {
	readings := s.readings(word)
	if len(readings) != 1 {
		return field{text: unknownText}
	}
	if q == unsplit {
		return s.expandText(word, readings[0])
	}
	b := &fieldBuilder{shell: s, reading: readings[0]}
	b.addParts(word.Parts, q)
	return field{text: string(b.current)}
}

// isQuotedDelimiter reports whether a here-document's delimiter is quoted, so
// that its text is not expanded.
func isQuotedDelimiter(word *syntax.Word) bool {
	for _, part := range word.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

// literalText returns the literal parts of a word, with NUL for each other
// part.
func literalText(word *syntax.Word) string {
	var b strings.Builder
	for _, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
		} else {
			b.WriteByte(0)
		}
	}
	return b.String()
}
