// Package search finds the lines of a text that match a pattern, as ripgrep
// finds them: the pattern has ripgrep's syntax and meaning (Unicode classes
// and word boundaries, ^ and $ at each line), and a match never spans lines
// unless Options.Multiline is set.
//
// A \r\n is one line ending, which a pattern sees as \n: $ matches before it,
// . does not match its \r, and with Options.Multiline \n matches all of it. A
// pattern that asks for \r itself, as x\r?$ does, sees the two bytes.
//
//	m, err := search.Compile(`func \w+`, search.Options{})
//	for hit, ok := m.Next(text, 0); ok; hit, ok = m.Next(text, hit.End) {
//		line := text[hit.Start:hit.End]
//	}
//
// A pattern is parsed (parse.go) into a tree, and the tree made a program of
// character steps (prog.go) that is run by automata which are built as the
// text needs them (dfa.go): forward to where a match ends, backward to where
// it begins. Every search is linear in the text. Most never come so far: what
// a match must hold (literal.go) is looked for first, many bytes at a time
// (finder.go), and only the lines that have it are matched.
//
// Where it differs from ripgrep 15:
//
//   - The Unicode tables are Go's, one edition older. \p{...} knows general
//     categories, scripts and Go's binary properties. \p{sc!=Greek} is the
//     negation that ripgrep documents; its program takes != for =.
//   - \r\n is one line ending also without --crlf. A lone \r is a character,
//     where --crlf takes it for a line ending. The flag R is not supported.
//   - A program is smaller, and Unicode word boundaries do not go together
//     with single bytes of (?-u).
//   - A Unicode \b behind a stray continuation byte takes it for no character,
//     ripgrep for part of the one before. (?-u:\B) beside a Unicode boundary
//     does not hold within characters.
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

// Options say how a pattern is meant.
type Options struct {
	IgnoreCase bool // letters match whatever their case (Unicode simple folding)
	Literal    bool // the pattern is text, not an expression
	Multiline  bool // matches may span lines, and . matches \n
}

// Matcher is a compiled pattern. It is safe for concurrent use.
type Matcher struct {
	forward, backward *program
	crosses           bool     // a match can hold \n, or depends on where the text ends
	crlf              bool     // \r\n is one line ending
	unix              *Matcher // for texts without \r; nil: the same
	required          [][]Literal
	finder            *finder // nil if nothing required is worth looking for
	pure              bool    // what the finder finds is a match
	starts            *finder // of what every match begins with; only if it crosses lines
	scratch           *sync.Pool
	stop              func() bool
	foreign           *bool // see NotingForeign; nil: not noted
}

// Hit is the lines that one match, or with Options.Multiline several matches
// that share lines, are in: from the first byte of the first to behind the
// ending of the last. It holds all of each line.
type Hit struct{ Start, End int }

// Compile reads a pattern. One that cannot be read, or that asks for what
// the engine does not have (look-around, back-references), is BAD_PATTERN
// with what is not supported and where.
func Compile(pattern string, o Options) (*Matcher, error) {
	return CompileContext(context.Background(), pattern, o)
}

// CompileContext is Compile that gives up, with its error, soon after ctx ends:
// a pattern of some megabytes takes seconds.
func CompileContext(ctx context.Context, pattern string, o Options) (*Matcher, error) {
	f := flags{ignoreCase: o.IgnoreCase, perLine: true, dotAll: o.Multiline, unicode: true}
	var tree *node
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

// textTree is the tree of a pattern that is plain text.
func textTree(text string, f flags) *node {
	p := &parser{flags: f}
	var subs []*node
	for _, r := range text {
		subs = append(subs, p.literal(r))
	}
	return concat(subs)
}

func crossesLines(tree *node) (crosses bool) {
	tree.walk(func(n *node) {
		crosses = crosses || n.op == opSet && n.set.has('\n') || n.op == opLook && (n.look == textStart || n.look == textEnd)
	})
	return crosses
}

// namesReturn reports whether the pattern asks for \r, by itself or in a class
// of a few characters. Classes such as \s and [^x] hold it by chance.
func namesReturn(tree *node) (names bool) {
	const few = 4
	tree.walk(func(n *node) {
		names = names || n.op == opSet && n.set.has('\r') && n.set.size(few+1) <= few
	})
	return names
}

// withinLines takes \n out of what the tree matches. A \n that is asked for
// by itself is an error, as the pattern could never match.
func withinLines(tree *node) (err error) {
	newline := single('\n')
	shared := map[*span]charset{} // what many parts share stays shared
	tree.walk(func(n *node) {
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

// CrossesLines reports whether a match can span lines, or depend on where
// the text begins or ends. Next must then be given whole files; else any run
// of whole lines.
func (m *Matcher) CrossesLines() bool { return m.crosses }

// Required returns what a text must hold to match at all: at least one
// literal of each set. Nothing is required when there are no sets. A text
// without one of them need not be searched; most others will match.
func (m *Matcher) Required() [][]Literal { return m.required }

// ByLine reports whether each match is in a line with ASCII that is looked for
// first. In any encoding that keeps ASCII as it is, such a line alone decides.
func (m *Matcher) ByLine() bool { return m.finder != nil && m.finder.ascii && !m.crosses }

// NotingForeign returns a Matcher that sets seen when a line that a match could
// be in is not UTF-8. It requires ByLine.
func (m *Matcher) NotingForeign(seen *bool) *Matcher {
	noting := *m
	noting.foreign = seen
	return &noting
}

// note records a text that is not UTF-8, if NotingForeign asked for it.
func (m *Matcher) note(text []byte) {
	if m.foreign != nil && !*m.foreign {
		*m.foreign = !utf8.Valid(text)
	}
}

// Until returns a Matcher that gives up, finding nothing more, soon after
// stop begins to return true, even within one Next over a large text.
func (m *Matcher) Until(stop func() bool) *Matcher {
	bounded := *m
	bounded.stop = stop
	return &bounded
}

// For returns a Matcher that finds the same in text, faster if text has no \r.
// It reads text once where the literals of the pattern hold line endings.
func (m *Matcher) For(text []byte) *Matcher {
	if m.unix == nil || bytes.IndexByte(text, '\r') >= 0 {
		return m
	}
	return m.unix.Until(m.stop)
}

// unixOf returns m for texts without \r, or nil if that makes no difference.
func (m *Matcher) unixOf(tree *node) *Matcher {
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

// takeLiterals takes from the pattern what a text must hold. With crlf, \n in
// the pattern matches \r\n, too.
func (m *Matcher) takeLiterals(tree *node, crlf bool) {
	known := extractor{crlf: crlf}.literals(tree)
	m.required = known.sets()
	looks := false
	tree.walk(func(n *node) { looks = looks || n.op == opLook })
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
