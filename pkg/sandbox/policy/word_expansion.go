package policy

import (
	"bytes"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	anything       = "\x00"
	maxVariants    = 32      // ways to read a command whose variables have several values
	maxBraces      = 128     // words that one word's braces may become
	maxOpenBraces  = 64      // { in one word
	maxFields      = 20_000  // words of one command
	maxExpandBytes = 1 << 18 // text of one command after expansion
	markStar       = byte(1) // unquoted * ? while a field is built
	markBracket    = byte(3) // unquoted [ while a field is built
	hereQuoted     = quoting(2)
)

// quoting tells how a part of a word is quoted.
type quoting int

// builder turns word parts into fields under one reading of the variables.
type builder struct {
	scope  *scope
	bind   binding
	fields []field
	cur    []byte
	open   bool // a field has begun, though it may be empty
	many   bool
	size   int
}

// fieldsOf expands words as arguments: braces, variables, splitting.
func (s *scope) fieldsOf(words []*syntax.Word, bind binding) []field {
	b := &builder{scope: s, bind: bind}
	for _, word := range words {
		alternatives, ok := expandBraces(word)
		if !ok {
			b.unknown(0)
			b.flush()
			continue
		}
		for _, parts := range alternatives {
			b.parts(parts, 0)
			b.flush()
		}
		if len(b.fields) > maxFields {
			s.check.tooMuch("more than 20 000 words in one command")
			return b.fields[:maxFields]
		}
	}
	return b.fields
}

// textOf expands a word without splitting, as in an assignment, a
// redirection or case.
func (s *scope) textOf(word *syntax.Word, bind binding) field {
	if word == nil {
		return field{}
	}
	b := &builder{scope: s, bind: bind}
	b.parts(word.Parts, 1)
	b.flush()
	texts := make([]string, len(b.fields))
	for i, f := range b.fields {
		texts[i] = f.text
	}
	text := strings.Join(texts, " ")
	if len(word.Parts) > 0 {
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(lit.Value, "~") {
			text = anything + text[len(tildeName(text)):]
		}
	}
	return field{text: text}
}

func tildeName(text string) string {
	if slash := strings.IndexByte(text, '/'); slash >= 0 {
		return text[:slash]
	}
	return text
}

func (b *builder) add(text string) {
	b.size += len(text)
	if b.size > maxExpandBytes {
		b.scope.check.tooMuch("expands to more than 256 KiB")
		return
	}
	b.cur = append(b.cur, text...)
	b.open = true
}

// unknown adds what cannot be told; outside quotes it may be several fields.
func (b *builder) unknown(q quoting) {
	b.add(anything)
	if q == 0 {
		b.many = true
	}
}

// flush ends the field, and decides whether a [ in it begins a bracket
// expression.
func (b *builder) flush() {
	if b.open {
		var out strings.Builder
		closing := bytes.LastIndexByte(b.cur, ']')
		for i := 0; i < len(b.cur); i++ {
			c, end := b.cur[i], 0
			if c == markBracket && i < closing {
				end = bracketEnd(b.cur[i:])
			}
			switch {
			case c == markStar, end > 0:
				out.WriteByte(0)
				b.many = true
				i += max(0, end-1)
			case c == markBracket:
				out.WriteByte('[')
			default:
				out.WriteByte(c)
			}
		}
		text := out.String()
		files := strings.Contains(text, anything) && bytes.IndexByte(b.cur, 0) < 0
		b.fields = append(b.fields, field{text: text, many: b.many, files: files})
	}
	b.cur, b.open, b.many = b.cur[:0], false, false
}

const maxBracket = 64 // bytes of a bracket expression that is read as one

// bracketEnd returns the length of the bracket expression that text begins
// with. One that holds a slash or another bracket may end elsewhere: of it
// only the bracket itself counts.
func bracketEnd(text []byte) int {
	text = text[:min(len(text), maxBracket)]
	if len(text) < 3 {
		return 1
	}
	end := bytes.IndexByte(text[2:], ']') + 2
	if end < 2 || bytes.ContainsAny(text[1:end], "/]\x03") {
		return 1
	}
	return end + 1
}

func (b *builder) parts(parts []syntax.WordPart, q quoting) {
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.literal(part.Value, q, i == 0)
		case *syntax.SglQuoted:
			b.open = true
			if part.Dollar {
				b.add(ansiC(part.Value))
			} else {
				b.add(part.Value)
			}
		case *syntax.DblQuoted:
			if !onlyEmptyList(b.scope, part) {
				b.open = true
			}
			b.parts(part.Parts, max(q, 3))
		case *syntax.ParamExp:
			b.param(part, q)
		case *syntax.CmdSubst:
			if len(part.Stmts) > 0 {
				b.unknown(q)
			}
		case *syntax.ProcSubst:
			b.add("/dev/fd/" + anything)
		case *syntax.ArithmExp:
			b.add(anything)
		default: // extended globs, and what later versions add
			b.unknown(q)
		}
	}
}

// onlyEmptyList reports whether the quotes hold "$@" alone while there are no
// positional parameters: that is no field at all.
func onlyEmptyList(s *scope, quoted *syntax.DblQuoted) bool {
	if len(quoted.Parts) != 1 || s.positional == nil || len(s.positional) > 0 {
		return false
	}
	p, ok := quoted.Parts[0].(*syntax.ParamExp)
	return ok && p.Param != nil && p.Param.Value == "@"
}

// literal adds text that is unquoted (q is 0, or 1 if fields are not split), of a
// here-document (2) or in double quotes (3).
func (b *builder) literal(text string, q quoting, first bool) {
	if q == 0 && first && strings.HasPrefix(text, "~") {
		b.add(anything)
		text = text[len(tildeName(text)):]
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			switch {
			case text[i] == '\n':
			case q == hereQuoted && !strings.ContainsRune("$`\\", rune(text[i])),
				q == 3 && !strings.ContainsRune("$`\"\\", rune(text[i])):
				b.add(text[i-1 : i+1])
			default:
				b.add(text[i : i+1])
			}
		case q == 0:
			b.globbed(c)
		default:
			b.add(text[i : i+1])
		}
	}
}

// globbed adds one unquoted character.
func (b *builder) globbed(c byte) {
	switch c {
	case '*', '?':
		b.add(string(rune(markStar)))
	case '[':
		b.add(string(rune(markBracket)))
	default:
		b.add(string([]byte{c}))
	}
}

// value adds a variable's known value; outside quotes it is split and globbed.
func (b *builder) value(text string, q quoting) {
	if q != 0 {
		b.add(text)
		return
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n':
			b.flush()
		default:
			b.globbed(text[i])
		}
	}
}

// list adds fields as "$@" and "${a[@]}" do.
func (b *builder) list(fields []field, q quoting) {
	for i, f := range fields {
		if i > 0 {
			if q == 1 || q == hereQuoted {
				b.add(" ")
			} else {
				b.flush()
			}
		}
		if f.unknown() {
			b.add(f.text)
			b.many = b.many || f.many || q == 0
			continue
		}
		b.value(f.text, q)
		b.open = b.open || q == 3
	}
}

// whole adds all of a list. Joined, as "$*" is, it has what IFS says between
// its fields.
func (b *builder) whole(fields []field, joined bool, q quoting) {
	if joined && q != 0 && len(fields) > 1 && b.scope.vars.known["IFS"] != nil {
		b.unknown(q)
		return
	}
	b.list(fields, q)
}

func (b *builder) param(p *syntax.ParamExp, q quoting) {
	if p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Slice != nil || p.Repl != nil || p.Names != 0 ||
		p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Exp != nil && !defaults(p) {
		if p.Length {
			b.add(anything)
		} else {
			b.unknown(q)
		}
		return
	}
	name := p.Param.Value
	if p.Index != nil {
		b.element(name, p.Index, q)
		return
	}
	if fields, ok := b.scope.special(name); ok {
		b.whole(fields, name == "*", q)
		return
	}
	switch v := b.bind[name]; v.state {
	case valueKnown:
		if v.text == "" && p.Exp != nil && p.Exp.Word != nil && p.Exp.Op != syntax.DefaultUnset {
			b.parts(p.Exp.Word.Parts, q)
			return
		}
		b.value(v.text, q)
	case valueUnset:
		if p.Exp != nil && p.Exp.Word != nil {
			b.parts(p.Exp.Word.Parts, q)
		}
	default:
		if name == "@" || name == "*" {
			b.many = true
		}
		b.unknown(q)
	}
}

// defaults reports whether the expansion is the variable or a word in its
// place: ${a-w}, ${a:-w}, ${a=w}, ${a:=w}.
func defaults(p *syntax.ParamExp) bool {
	if p.Exp == nil {
		return false
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

// element adds ${a[i]}, where all of the array is known.
func (b *builder) element(name string, index syntax.ArithmExpr, q quoting) {
	word, ok := index.(*syntax.Word)
	array, known := b.scope.vars.array(name)
	if !ok || !known {
		b.many = b.many || q != 0
		b.unknown(q)
		return
	}
	switch key := word.Lit(); {
	case key == "@" || key == "*":
		b.whole(array, key == "*", q)
	case len(key) == 1 && key[0] >= '0' && key[0] <= '9':
		if i := int(key[0] - '0'); i < len(array) {
			b.list(array[i:i+1], q)
		}
	default:
		b.unknown(q)
	}
}

// special returns what a positional parameter expands to, where that is
// known: nothing in bash -c 'text' by itself.
func (s *scope) special(name string) ([]field, bool) {
	switch {
	case name == "0":
		return []field{s.zero}, s.zero.text != "" && s.vars.known["BASH_ARGV0"] == nil
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
