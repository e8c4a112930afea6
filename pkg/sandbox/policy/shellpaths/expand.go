package shellpaths

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy/ansic"
)

// unknownPart replaces a part of a word whose text only the shell knows when it
// runs.
const unknownPart = "\x00"

// expandBraces returns the words that a brace expression without nested braces
// makes of a word, at most maxBraceWords. A sequence ({1..9}) is kept as it is.
func expandBraces(word *syntax.Word) (words []*syntax.Word) {
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), word.Parts...)}
	if len(word.Parts) > maxBraceParts || strings.Count(word.Lit(), "{") > maxBraceParts || !syntax.SplitBraces(split) {
		return []*syntax.Word{word}
	}
	words = []*syntax.Word{{}}
	for _, part := range split.Parts {
		options := [][]syntax.WordPart{{part}}
		if brace, ok := part.(*syntax.BraceExp); ok {
			if brace.Sequence {
				return []*syntax.Word{word}
			}
			options = nil
			for _, elem := range brace.Elems {
				options = append(options, elem.Parts)
			}
		}
		var next []*syntax.Word
		for _, begin := range words {
			for _, option := range options {
				if len(next) < maxBraceWords {
					next = append(next, &syntax.Word{Parts: append(begin.Parts[:len(begin.Parts):len(begin.Parts)], option...)})
				}
			}
		}
		words = next
	}
	return words
}

// expand returns the text of a word without its quotes and escapes, with the
// values of known variables and unknownPart for the others.
func (f *finder) expand(word *syntax.Word) string {
	var b strings.Builder
	f.expandParts(&b, word.Parts, false)
	return b.String()
}

// expandParts appends the expanded parts of a word to b, unknown ones as a mark. quoted
// says that they are in double quotes.
func (f *finder) expandParts(b *strings.Builder, parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		if b.Len() > maxCommandBytes {
			return
		}
		switch x := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(x.Value, quoted))
		case *syntax.SglQuoted:
			if x.Dollar {
				b.WriteString(ansic.Decode(x.Value))
			} else {
				b.WriteString(x.Value)
			}
		case *syntax.DblQuoted:
			f.expandParts(b, x.Parts, true)
		case *syntax.ParamExp:
			b.WriteString(f.expandVariable(x))
		default:
			b.WriteString(unknownPart)
		}
	}
}

// expandVariable returns the value of a variable, or the word that replaces it if it is
// not set or empty, as in ${NAME:-word}. It returns unknown if the value is not known,
// and for other expansions.
func (f *finder) expandVariable(x *syntax.ParamExp) string {
	if x.Param == nil || x.Slice != nil || x.Repl != nil || x.Length {
		return unknownPart
	}
	value, known := f.vars[x.Param.Value]
	if x.Exp == nil {
		if known {
			return value
		}
		return unknownPart
	}
	switch x.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if known && value != "" {
			return value
		}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
	default:
		return unknownPart
	}
	if x.Exp.Word == nil {
		return ""
	}
	return f.expand(x.Exp.Word)
}

// unescape removes the backslashes of a literal: in double quotes (quoted) only those
// that the shell removes there. A line end after a removed backslash goes, too.
func unescape(text string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
