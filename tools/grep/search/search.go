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
// (literal_finder.go), and match only the lines that have them.
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
	crossesLines      bool        // a match can contain \n, or depends on the ends of the text
	crlf              bool        // \r\n is one line ending
	forLF             *Matcher    // equivalent, for texts without \r; nil: use this Matcher
	required          [][]Literal // one literal of each set is in every match
	finder            *finder     // finds lines with a required literal; nil: no literal is worth searching for
	literalSuffices   bool        // each certain literal of finder is a match, which needs no automaton
	startFinder       *finder     // finds positions where a match may begin; nil: not used. Only set with crossesLines.
	pool              *sync.Pool  // of *automata
	stop              func() bool // the search stops when it returns true; nil: never
	sawInvalid        *bool       // see ReportingInvalidUTF8; nil: not noted
}

// MatchedLines is the range of the lines with one match, in bytes: from the first byte of the
// first line to after the ending of the last line. With Options.Multiline it
// may contain several matches that share lines.
type MatchedLines struct{ Start, End int }

// Compile compiles a pattern. It returns BAD_PATTERN, with the reason and the
// position, if the pattern is malformed or needs features that the engine lacks
// (look-around, back-references).
func Compile(pattern string, o Options) (*Matcher, error) {
	return CompileContext(context.Background(), pattern, o)
}

// CompileContext is like Compile, but returns ctx's error soon after ctx ends:
// compiling a pattern of some megabytes takes seconds.
func CompileContext(ctx context.Context, pattern string, o Options) (*Matcher, error) {
	f := flags{ignoreCase: o.IgnoreCase, perLine: true, dotAll: o.Multiline, unicode: true}
	var tree *regexNode
	var err error
	if o.Literal && utf8.ValidString(pattern) {
		if utf8.RuneCountInString(pattern) > maxInsts {
			return nil, errTooManyParts()
		}
		tree = plainTextTree(pattern, f)
	} else if tree, err = parse(ctx, pattern, f); err != nil {
		return nil, err
	}
	m := &Matcher{crlf: !namesCarriageReturn(tree)}
	if o.Multiline {
		m.crossesLines = crossesLines(tree)
	}
	if !m.crossesLines {
		if err := removeNewlines(tree); err != nil {
			return nil, err
		}
	}
	if m.forward, err = compile(ctx, tree, m.crlf, false); err != nil {
		return nil, err
	}
	if m.backward, err = compile(ctx, tree, m.crlf, true); err != nil {
		return nil, err
	}
	m.setLiterals(tree, m.crlf)
	m.pool = newAutomataPool(m)
	m.forLF = m.newForLF(tree)
	return m, nil
}

// plainTextTree returns the tree of a pattern that is plain text.
func plainTextTree(text string, f flags) *regexNode {
	p := &parser{flags: f}
	var subs []*regexNode
	for _, r := range text {
		subs = append(subs, p.literalNode(r))
	}
	return newConcat(subs)
}

// crossesLines reports whether a match can contain \n, or depends on the ends
// of the text.
func crossesLines(tree *regexNode) (crosses bool) {
	tree.walk(func(n *regexNode) {
		crosses = crosses || n.op == opSet && n.set.has('\n') || n.op == opLook && (n.look == textStart || n.look == textEnd)
	})
	return crosses
}

// namesCarriageReturn reports whether the pattern names \r, alone or in a class
// of at most four characters. Classes such as \s and [^x] contain it only
// incidentally.
func namesCarriageReturn(tree *regexNode) (names bool) {
	const few = 4
	tree.walk(func(n *regexNode) {
		names = names || n.op == opSet && n.set.has('\r') && n.set.sizeUpTo(few+1) <= few
	})
	return names
}

// removeNewlines changes the tree so that a match is within one line: it
// removes \n from the sets and makes \A and \z the ends of a line. It returns
// BAD_PATTERN if the pattern names \n explicitly, since it could never match.
func removeNewlines(tree *regexNode) (err error) {
	newline := singleRune('\n')
	shared := map[*runeRange]charset{} // sets that several parts share stay shared
	tree.walk(func(n *regexNode) {
		switch {
		case n.op == opLook && n.look == textStart:
			n.look = lineStart
		case n.op == opLook && n.look == textEnd:
			n.look = lineEnd
		case n.op != opSet || !n.set.has('\n'):
		case n.set.sizeUpTo(2) == 1:
			err = toolerr.New(toolerr.BadPattern, `the pattern has a \n, but matches cannot span lines: set multiline=true`)
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
// the text. If it does, the text passed to Next must be a whole file. Otherwise
// it may be any run of whole lines.
func (m *Matcher) CrossesLines() bool { return m.crossesLines }

// RequiredLiterals returns sets of literals: a text that matches contains at
// least one literal of each set. nil means that nothing is required. A text
// without any literal of a set need not be searched; most others will match.
func (m *Matcher) RequiredLiterals() [][]Literal { return m.required }

// NeedsASCIILiteral reports whether each match is within a line that contains
// an ASCII literal, and Next searches for these lines first. Then only these
// lines matter, also in a text with another encoding that preserves ASCII.
func (m *Matcher) NeedsASCIILiteral() bool {
	return m.finder != nil && m.finder.ascii && !m.crossesLines
}

// ReportingInvalidUTF8 returns a Matcher that sets *seen to true when it examines
// a line that is not valid UTF-8 and may contain a match. NeedsASCIILiteral
// must be true.
func (m *Matcher) ReportingInvalidUTF8(seen *bool) *Matcher {
	noting := *m
	noting.sawInvalid = seen
	return &noting
}

// reportInvalidUTF8 sets *m.sawInvalid, if m has it, to whether text is not valid UTF-8.
// Once true, it stays so.
func (m *Matcher) reportInvalidUTF8(text []byte) {
	if m.sawInvalid != nil && !*m.sawInvalid {
		*m.sawInvalid = !utf8.Valid(text)
	}
}

// StopWhen returns a Matcher that ends a search soon after stop returns true,
// even within one call of Next over a large text. Next then finds nothing more.
// stop is called often, and may be nil.
func (m *Matcher) StopWhen(stop func() bool) *Matcher {
	bounded := *m
	bounded.stop = stop
	return &bounded
}

// ForText returns a Matcher with the same results for text, which is faster if
// text has no \r. It reads text once if literals of the pattern contain line
// endings.
func (m *Matcher) ForText(text []byte) *Matcher {
	if m.forLF == nil || bytes.IndexByte(text, '\r') >= 0 {
		return m
	}
	return m.forLF.StopWhen(m.stop)
}

// newForLF returns an equivalent Matcher for texts without \r, or nil if it
// would be the same.
func (m *Matcher) newForLF(tree *regexNode) *Matcher {
	ending := func(l Literal) bool { return bytes.Contains(l.Text, []byte("\r\n")) }
	if !m.crlf || !m.crossesLines || !slices.ContainsFunc(slices.Concat(m.required...), ending) {
		return nil
	}
	unix := *m
	unix.finder, unix.startFinder, unix.literalSuffices = nil, nil, false
	unix.setLiterals(tree, false)
	unix.pool = newAutomataPool(&unix)
	return &unix
}

// setLiterals sets the required literals and the finders. If crlf is set, \n in
// the pattern also matches \r\n.
func (m *Matcher) setLiterals(tree *regexNode, crlf bool) {
	known := extractor{crlf: crlf}.extract(tree)
	m.required = known.required()
	looks := false
	tree.walk(func(n *regexNode) { looks = looks || n.op == opLook })
	if begins := known.prefixes(); m.crossesLines && !slices.ContainsFunc(begins, func(l Literal) bool { return len(l.Text) < 2 }) {
		if f := newFinder(begins, false); f != nil && f.atLiteralStart {
			m.startFinder = f
		}
	}
	for i, set := range slices.Concat(m.required, commonAffixes(m.required)) {
		pure := i == 0 && known.exact != nil && !looks
		if f := newFinder(set, pure); f != nil && (m.finder == nil || f.cost < m.finder.cost) {
			m.finder, m.literalSuffices = f, pure
		}
	}
}
