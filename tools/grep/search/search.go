// Package search finds the lines of a text that match a pattern, like ripgrep:
// the pattern has ripgrep's syntax and meaning (Unicode classes and word
// boundaries, ^ and $ at each line), and a match never spans lines unless
// Options.Multiline is set.
//
// A \r\n is one line ending, which a pattern sees as \n: $ matches before it, .
// does not match its \r, and with Options.Multiline \n matches both bytes. A
// pattern that names \r, such as x\r?$, sees the two bytes.
//
//	m, err := search.Compile(`func \w+`, search.Options{})
//	for hit, ok := m.Next(text, 0); ok; hit, ok = m.Next(text, hit.End) {
//		line := text[hit.Start:hit.End]
//	}
//
// A pattern is parsed (parse.go) into a tree, which is compiled to a program of
// character steps (program.go). Automata run it and are built as the text needs
// them (dfa.go): forward to the end of a match, backward to its beginning.
// Every search is linear in the text. Most searches do less: they first look
// for literals that a match must contain (literal.go), many bytes at a time
// (finder.go), and match only the lines that have them.
//
// Differences from ripgrep 15:
//
//   - The Unicode tables are Go's, one edition older. \p{...} knows general
//     categories, scripts and Go's binary properties. \p{sc!=Greek} is the
//     negation that ripgrep documents; its program takes != for =.
//   - \r\n is one line ending also without --crlf. A lone \r is a character,
//     where --crlf takes it for a line ending. The flag R is not supported.
//   - A program is smaller, and Unicode word boundaries do not go together
//     with single bytes of (?-u).
//   - A Unicode \b after a stray continuation byte treats the byte as no
//     character, ripgrep as part of the previous one. (?-u:\B) next to a Unicode
//     boundary does not hold within characters.
//   - Empty matches within a character are not reported, and one at the end
//     of a text without \n is.
//   - \A and \z are the ends of the text, or of the line where a match is
//     within one; ripgrep mixes the two.
package search

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Options configure the meaning of a pattern.
type Options struct {
	IgnoreCase bool // letters match in any case (Unicode simple folding)
	Literal    bool // the pattern is plain text
	Multiline  bool // matches may span lines, and . matches \n
}

// Matcher is a compiled pattern. It is safe for concurrent use.
type Matcher struct {
	forward, backward *program
	crosses           bool     // a match can contain \n, or depends on the ends of the text
	crlf              bool     // \r\n is one line ending
	unix              *Matcher // for texts without \r; nil: the same
	required          [][]Literal
	finder            *finder // nil if no required literal is worth looking for
	pure              bool    // an occurrence of the finder's literal is a match
	starts            *finder // of the beginnings of matches; only if it crosses lines
	scratch           *sync.Pool
	stop              func() bool
	foreign           *bool // see NotingForeign; nil: not noted
}

// Hit is the range of the lines of one match, or with Options.Multiline of
// several matches that share lines: from the first byte of the first line to
// after the ending of the last.
type Hit struct{ Start, End int }

// Compile compiles a pattern. It returns BAD_PATTERN, with the reason and the
// position, if the pattern is malformed or needs features that the engine lacks
// (look-around, back-references).
func Compile(pattern string, o Options) (*Matcher, error) {
	return CompileContext(context.Background(), pattern, o)
}

// CompileContext is Compile that stops with ctx's error soon after ctx ends: a
// pattern of some megabytes takes seconds.
func CompileContext(ctx context.Context, pattern string, o Options) (*Matcher, error) {
	f := flags{ignoreCase: o.IgnoreCase, perLine: true, dotAll: o.Multiline, unicode: true}
	var tree *regexNode
	var err error
	if o.Literal && utf8.ValidString(pattern) {
		if utf8.RuneCountInString(pattern) > maxInsts {
			return nil, errTooManyParts()
		}
		tree = textTree(pattern, f)
	} else if tree, err = parse(ctx, pattern, f); err != nil {
		return nil, err
	}
	m := &Matcher{crlf: !namesReturn(tree)}
	if o.Multiline {
		m.crosses = crossesLines(tree)
	}
	if !m.crosses {
		if err := withinLines(tree); err != nil {
			return nil, err
		}
	}
	if m.forward, err = compile(ctx, tree, m.crlf, false); err != nil {
		return nil, err
	}
	if m.backward, err = compile(ctx, tree, m.crlf, true); err != nil {
		return nil, err
	}
	m.takeLiterals(tree, m.crlf)
	m.scratch = newScratch(m)
	m.unix = m.unixOf(tree)
	return m, nil
}

// textTree returns the tree of a pattern that is plain text.
func textTree(text string, f flags) *regexNode {
	p := &parser{flags: f}
	var subs []*regexNode
	for _, r := range text {
		subs = append(subs, p.literal(r))
	}
	return concat(subs)
}

func crossesLines(tree *regexNode) (crosses bool) {
	tree.walk(func(n *regexNode) {
		crosses = crosses || n.op == opSet && n.set.has('\n') || n.op == opLook && (n.look == textStart || n.look == textEnd)
	})
	return crosses
}

// namesReturn reports whether the pattern names \r, alone or in a class of a
// few characters. Classes such as \s and [^x] contain it only incidentally.
func namesReturn(tree *regexNode) (names bool) {
	const few = 4
	tree.walk(func(n *regexNode) {
		names = names || n.op == opSet && n.set.has('\r') && n.set.size(few+1) <= few
	})
	return names
}

// withinLines removes \n from the sets of the tree. A pattern that names \n
// explicitly is an error, as it could never match.
func withinLines(tree *regexNode) (err error) {
	newline := single('\n')
	shared := map[*span]charset{} // sets that several parts share stay shared
	tree.walk(func(n *regexNode) {
		switch {
		case n.op == opLook && n.look == textStart:
			n.look = lineStart
		case n.op == opLook && n.look == textEnd:
			n.look = lineEnd
		case n.op != opSet || !n.set.has('\n'):
		case n.set.size(2) == 1:
			err = toolerr.New(toolerr.BadPattern, `the pattern has a \n, but a match is within one line: set multiline=true for matches that span lines`)
		default:
			first := &n.set[0]
			if shared[first] == nil {
				shared[first] = n.set.minus(newline)
			}
			n.set = shared[first]
		}
	})
	return err
}

// CrossesLines reports whether a match can span lines, or depend on the ends of
// the text. If so, pass whole files to Next; otherwise any run of whole lines.
func (m *Matcher) CrossesLines() bool { return m.crosses }

// Required returns the literals that a matching text must contain: at least one
// of each set. Without sets, nothing is required. A text that lacks a set need
// not be searched; most others will match.
func (m *Matcher) Required() [][]Literal { return m.required }

// ByLine reports whether every match is in a line with an ASCII literal, for
// which Next looks first. In any encoding that preserves ASCII, only such lines
// matter.
func (m *Matcher) ByLine() bool { return m.finder != nil && m.finder.ascii && !m.crosses }

// NotingForeign returns a Matcher that sets *seen if a line that may contain a
// match is not UTF-8. ByLine must be true.
func (m *Matcher) NotingForeign(seen *bool) *Matcher {
	noting := *m
	noting.foreign = seen
	return &noting
}

// note sets the flag of NotingForeign if text is not UTF-8.
func (m *Matcher) note(text []byte) {
	if m.foreign != nil && !*m.foreign {
		*m.foreign = !utf8.Valid(text)
	}
}

// Until returns a Matcher that stops soon after stop returns true, even within
// one Next over a large text, and then finds nothing more.
func (m *Matcher) Until(stop func() bool) *Matcher {
	bounded := *m
	bounded.stop = stop
	return &bounded
}

// For returns a Matcher with the same results for text, faster if text has no
// \r. It reads text once if literals of the pattern contain line endings.
func (m *Matcher) For(text []byte) *Matcher {
	if m.unix == nil || bytes.IndexByte(text, '\r') >= 0 {
		return m
	}
	return m.unix.Until(m.stop)
}

// unixOf returns m for texts without \r, or nil if it would be the same.
func (m *Matcher) unixOf(tree *regexNode) *Matcher {
	ending := func(l Literal) bool { return bytes.Contains(l.Text, []byte("\r\n")) }
	if !m.crlf || !m.crosses || !slices.ContainsFunc(slices.Concat(m.required...), ending) {
		return nil
	}
	unix := *m
	unix.finder, unix.starts, unix.pure = nil, nil, false
	unix.takeLiterals(tree, false)
	unix.scratch = newScratch(&unix)
	return &unix
}

// takeLiterals sets the required literals and the finders. If crlf is set, \n
// in the pattern also matches \r\n.
func (m *Matcher) takeLiterals(tree *regexNode, crlf bool) {
	known := extractor{crlf: crlf}.literals(tree)
	m.required = known.sets()
	looks := false
	tree.walk(func(n *regexNode) { looks = looks || n.op == opLook })
	if begins := known.begins(); m.crosses && !slices.ContainsFunc(begins, func(l Literal) bool { return len(l.Text) < 2 }) {
		if f := newFinder(begins, false); f != nil && f.starts {
			m.starts = f
		}
	}
	for i, set := range slices.Concat(m.required, shared(m.required)) {
		pure := i == 0 && known.exact != nil && !looks
		if f := newFinder(set, pure); f != nil && (m.finder == nil || f.cost < m.finder.cost) {
			m.finder, m.pure = f, pure
		}
	}
}
