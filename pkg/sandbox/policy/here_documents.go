package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// stdin is the input of a program, as far as the text gives it.
type stdin struct {
	text  field
	given bool // by a here-document or here-string
}

// hereText returns what here-documents and here-strings give to the command.
func (s *scope) hereText(redirects []*syntax.Redirect) stdin {
	var in stdin
	for _, redirect := range redirects {
		switch {
		case redirect.N != nil && redirect.N.Value != "0":
		case redirect.Op == syntax.WordHdoc:
			in = stdin{text: s.oneText(redirect.Word, 1), given: true}
		case redirect.Hdoc != nil:
			q := hereQuoted
			if quotedWord(redirect.Word) {
				in = stdin{text: field{text: rawText(redirect.Hdoc)}, given: true}
				continue
			}
			in = stdin{text: s.oneText(redirect.Hdoc, q), given: true}
		case redirect.Op == syntax.RdrIn || redirect.Op == syntax.RdrInOut || redirect.Op == syntax.DplIn:
			in = stdin{}
		}
	}
	return in
}

// oneText expands a word where its variables have one value only.
func (s *scope) oneText(word *syntax.Word, q quoting) field {
	readings := s.variants(word)
	if len(readings) != 1 {
		return field{text: anything}
	}
	if q == 1 {
		return s.textOf(word, readings[0])
	}
	b := &builder{scope: s, bind: readings[0]}
	b.parts(word.Parts, q)
	return field{text: string(b.cur)}
}

// quotedWord reports whether a here-document's delimiter is quoted, so that
// its text is taken as it is.
func quotedWord(word *syntax.Word) bool {
	for _, part := range word.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

func rawText(word *syntax.Word) string {
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
