package policy

import (
	"bytes"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy/ansic"
)

// Bounds of expansion, and marks within a field while it is built.
const (
	unknownText    = "\x00"  // a field's text if nothing of it is known
	maxReadings    = 32      // ways to read a command whose variables have several values
	maxBraceWords  = 128     // words that brace expansion makes of one word
	maxOpenBraces  = 64      // { in one word
	maxFields      = 20_000  // words of one command
	maxExpandBytes = 1 << 18 // text of one command after expansion
	markStar       = byte(1) // an unquoted * or ?
	markBracket    = byte(3) // an unquoted [
)

// quoting tells how a part of a word is quoted, and with it what bash does to
// the part. A higher value wins over a lower one around it.
type quoting int

const (
	unquoted     quoting = iota // split into fields, globs match
	unsplit                     // as in an assignment: neither split nor globbed
	hereQuoted                  // text of a here-document
	doubleQuoted                // within "…"
)

// fieldBuilder expands word parts to fields, in one reading of the variables.
type fieldBuilder struct {
	shell        *shellText
	reading      reading
	fields       []field // the fields that are complete
	current      []byte  // text of the current field
	begun        bool    // the current field exists, even if it is empty
	mayBeSeveral bool    // of the current field
	totalBytes   int     // added so far, at most maxExpandBytes
}

// expandFields expands words to a command's arguments: braces, variables, field
// splitting, globs. Parts that are not known become unknown.
func (s *shellText) expandFields(words []*syntax.Word, values reading) []field {
	b := &fieldBuilder{shell: s, reading: values}
	for _, word := range words {
		alternatives, ok := expandBraces(word)
		if !ok {
			b.addUnknown(unquoted)
			b.endField()
			continue
		}
		for _, parts := range alternatives {
			b.addParts(parts, unquoted)
			b.endField()
		}
		if len(b.fields) > maxFields {
			s.eval.denyOverBound("more than 20 000 words in one command")
			return b.fields[:maxFields]
		}
	}
	return b.fields
}

// expandText expands a word to one text without field splitting, as in an
// assignment or a redirection. A nil word gives an empty field.
func (s *shellText) expandText(word *syntax.Word, values reading) field {
	if word == nil {
		return field{}
	}
	b := &fieldBuilder{shell: s, reading: values}
	b.addParts(word.Parts, unsplit)
	b.endField()
	texts := make([]string, len(b.fields))
	for i, f := range b.fields {
		texts[i] = f.text
	}
	text := strings.Join(texts, " ")
	if len(word.Parts) > 0 {
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(lit.Value, "~") {
			text = unknownText + text[len(tildePrefix(text)):]
		}
	}
	return field{text: text}
}

// tildePrefix returns the tilde prefix of a text that begins with ~, such as ~name: all
// before its first slash.
func tildePrefix(text string) string {
	if slash := strings.IndexByte(text, '/'); slash >= 0 {
		return text[:slash]
	}
	return text
}

// addText adds text to the current field, which begins with it if necessary. It
// denies the command if the expansion becomes too long.
func (b *fieldBuilder) addText(text string) {
	b.totalBytes += len(text)
	if b.totalBytes > maxExpandBytes {
		b.shell.eval.denyOverBound("expands to more than 256 KiB")
		return
	}
	b.current = append(b.current, text...)
	b.begun = true
}

// addUnknown adds an unknown part, which may become several fields if it is
// unquoted.
func (b *fieldBuilder) addUnknown(q quoting) {
	b.addText(unknownText)
	if q == unquoted {
		b.mayBeSeveral = true
	}
}

// endField completes the current field, if it has begun. It replaces unquoted *
// and ?, and [ that begins a bracket expression, by unknown text.
func (b *fieldBuilder) endField() {
	if b.begun {
		var out strings.Builder
		closing := bytes.LastIndexByte(b.current, ']')
		for i := 0; i < len(b.current); i++ {
			c, end := b.current[i], 0
			if c == markBracket && i < closing {
				end = globBracketLength(b.current[i:])
			}
			switch {
			case c == markStar, end > 0:
				out.WriteByte(0)
				b.mayBeSeveral = true
				i += max(0, end-1)
			case c == markBracket:
				out.WriteByte('[')
			default:
				out.WriteByte(c)
			}
		}
		text := out.String()
		files := strings.Contains(text, unknownText) && bytes.IndexByte(b.current, 0) < 0
		b.fields = append(b.fields, field{text: text, maybeMany: b.mayBeSeveral, fromGlob: files})
	}
	b.current, b.begun, b.mayBeSeveral = b.current[:0], false, false
}

// maxGlobBracket is the length in bytes of the longest text that is read as a
// bracket expression.
const maxGlobBracket = 64 // bytes of a bracket expression that is read as one

// globBracketLength returns the length in bytes of the bracket expression at
// the start of text. It returns 1, for the bracket alone, if the expression has
// no end within maxGlobBracket bytes, or contains a slash or another bracket
// and thus may end elsewhere.
func globBracketLength(text []byte) int {
	text = text[:min(len(text), maxGlobBracket)]
	if len(text) < 3 {
		return 1
	}
	end := bytes.IndexByte(text[2:], ']') + 2
	if end < 2 || bytes.ContainsAny(text[1:end], "/]\x03") {
		return 1
	}
	return end + 1
}

// addParts adds the parts of a word, quoted as q says.
func (b *fieldBuilder) addParts(parts []syntax.WordPart, q quoting) {
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.addLiteral(part.Value, q, i == 0)
		case *syntax.SglQuoted:
			b.begun = true
			if part.Dollar {
				b.addText(ansic.Decode(part.Value))
			} else {
				b.addText(part.Value)
			}
		case *syntax.DblQuoted:
			if !expandsToNoField(b.shell, part) {
				b.begun = true
			}
			b.addParts(part.Parts, max(q, doubleQuoted))
		case *syntax.ParamExp:
			b.addParam(part, q)
		case *syntax.CmdSubst:
			if len(part.Stmts) > 0 {
				b.addUnknown(q)
			}
		case *syntax.ProcSubst:
			b.addText("/dev/fd/" + unknownText)
		case *syntax.ArithmExp:
			b.addText(unknownText)
		default: // extended globs, and parts that later versions of the parser add
			b.addUnknown(q)
		}
	}
}

// expandsToNoField reports whether quotes contain nothing but "$@" while there
// are no positional parameters, or "${a[@]}" of an empty array: bash makes no
// field of that.
func expandsToNoField(s *shellText, quoted *syntax.DblQuoted) bool {
	for _, part := range quoted.Parts {
		p, ok := part.(*syntax.ParamExp)
		if !ok || p.Param == nil || !s.isEmptyList(p) {
			return false
		}
	}
	return len(quoted.Parts) > 0
}

// isEmptyList reports whether p is $@ or ${a[@]}, and expands to no elements.
func (s *shellText) isEmptyList(p *syntax.ParamExp) bool {
	if p.Index == nil {
		return p.Param.Value == "@" && s.positional != nil && len(s.positional) == 0
	}
	word, ok := p.Index.(*syntax.Word)
	array, known := s.vars.constantArray(p.Param.Value)
	return ok && word.Lit() == "@" && known && len(array) == 0
}

// addLiteral adds literal text quoted as q says, without its escapes. first
// says that it begins the word, so that an unquoted ~ is expanded.
func (b *fieldBuilder) addLiteral(text string, q quoting, first bool) {
	if q == unquoted && first && strings.HasPrefix(text, "~") {
		b.addText(unknownText)
		text = text[len(tildePrefix(text)):]
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			switch {
			case text[i] == '\n':
			case q == hereQuoted && !strings.ContainsRune("$`\\", rune(text[i])),
				q == doubleQuoted && !strings.ContainsRune("$`\"\\", rune(text[i])):
				b.addText(text[i-1 : i+1])
			default:
				b.addText(text[i : i+1])
			}
		case q == unquoted:
			b.addUnquoted(c)
		default:
			b.addText(text[i : i+1])
		}
	}
}

// addUnquoted adds one unquoted character, glob characters as marks.
func (b *fieldBuilder) addUnquoted(c byte) {
	switch c {
	case '*', '?':
		b.addText(string(rune(markStar)))
	case '[':
		b.addText(string(rune(markBracket)))
	default:
		b.addText(string([]byte{c}))
	}
}

// addValue adds a variable's known value; if it is unquoted, with field
// splitting and globs.
func (b *fieldBuilder) addValue(text string, q quoting) {
	if q != unquoted {
		b.addText(text)
		return
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n':
			b.endField()
		default:
			b.addUnquoted(text[i])
		}
	}
}

// addList adds fields as "$@" and "${a[@]}" do.
func (b *fieldBuilder) addList(fields []field, q quoting) {
	for i, f := range fields {
		if i > 0 {
			if q == unsplit || q == hereQuoted {
				b.addText(" ")
			} else {
				b.endField()
			}
		}
		if f.hasUnknown() {
			b.addText(f.text)
			b.mayBeSeveral = b.mayBeSeveral || f.maybeMany || q == unquoted
			continue
		}
		b.addValue(f.text, q)
		b.begun = b.begun || q == doubleQuoted
	}
}

// addArray adds all elements of an array or all positional parameters. joined
// says that they become one field, as in "$*", with the first character of IFS
// between them.
func (b *fieldBuilder) addArray(fields []field, joined bool, q quoting) {
	if joined && q != unquoted && len(fields) > 1 && b.shell.vars.byName["IFS"] != nil {
		b.addUnknown(q)
		return
	}
	b.addList(fields, q)
}

// addParam adds a parameter expansion. Forms other than the plain variable, a
// default word and an element are unknown.
func (b *fieldBuilder) addParam(p *syntax.ParamExp, q quoting) {
	if p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Slice != nil || p.Repl != nil || p.Names != 0 ||
		p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Exp != nil && !hasDefaultWord(p) {
		if p.Length {
			b.addText(unknownText)
		} else {
			b.addUnknown(q)
		}
		return
	}
	name := p.Param.Value
	if p.Index != nil {
		b.addElement(name, p.Index, q)
		return
	}
	if fields, ok := b.shell.positionalValue(name); ok {
		b.addArray(fields, name == "*", q)
		return
	}
	switch v := b.reading[name]; v.state {
	case valueKnown:
		if v.text == "" && p.Exp != nil && p.Exp.Word != nil && p.Exp.Op != syntax.DefaultUnset {
			b.addParts(p.Exp.Word.Parts, q)
			return
		}
		b.addValue(v.text, q)
	case valueUnset:
		if p.Exp != nil && p.Exp.Word != nil {
			b.addParts(p.Exp.Word.Parts, q)
		}
	default:
		if name == "@" || name == "*" {
			b.mayBeSeveral = true
		}
		b.addUnknown(q)
	}
}

// hasDefaultWord reports whether the expansion gives the variable or else a
// word: ${a-w}, ${a:-w}, ${a=w}, ${a:=w}.
func hasDefaultWord(p *syntax.ParamExp) bool {
	if p.Exp == nil {
		return false
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

// addElement adds ${a[index]}; it is unknown unless the whole array is known
// and the index is @, * or one digit.
func (b *fieldBuilder) addElement(name string, index syntax.ArithmExpr, q quoting) {
	word, ok := index.(*syntax.Word)
	array, known := b.shell.vars.constantArray(name)
	if !ok || !known {
		b.mayBeSeveral = b.mayBeSeveral || q != unquoted
		b.addUnknown(q)
		return
	}
	switch key := word.Lit(); {
	case key == "@" || key == "*":
		b.addArray(array, key == "*", q)
	case len(key) == 1 && key[0] >= '0' && key[0] <= '9':
		if i := int(key[0] - '0'); i < len(array) {
			b.addList(array[i:i+1], q)
		}
	default:
		b.addUnknown(q)
	}
}

// positionalValue returns the fields that a positional parameter expands to, or
// $0. ok is false if they are not known or name is not one of these. A
// parameter that is known to be unset gives no fields.
func (s *shellText) positionalValue(name string) (fields []field, ok bool) {
	switch {
	case name == "0":
		return []field{s.arg0}, s.arg0.text != "" && s.vars.byName["BASH_ARGV0"] == nil
	case s.positional == nil:
		return nil, false
	case name == "@" || name == "*":
		return s.positional, true
	case len(name) == 1 && name[0] >= '1' && name[0] <= '9':
		if i := int(name[0] - '1'); i < len(s.positional) {
			return s.positional[i : i+1], true
		}
		return nil, true
	}
	return nil, false
}
