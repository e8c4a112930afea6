// Package search finds the lines of a text that match a pattern, as ripgrep
// finds them: the pattern has ripgrep's syntax and meaning (Unicode classes
// and word boundaries, ^ and $ at each line, \r\n as one ending is not
// assumed), and a match never spans lines unless Options.Multiline is set.
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
//   - The flag R (CRLF) is not supported, a program is smaller, and Unicode
//     word boundaries do not go together with single bytes of (?-u).
//   - A Unicode \b behind a stray continuation byte takes it for no character,
//     ripgrep for part of the one before. (?-u:\B) beside a Unicode boundary
//     does not hold within characters.
//   - Empty matches within a character are not reported, and one at the end
//     of a text without \n is.
//   - \A and \z are the ends of the text, or of the line where a match is
//     within one; ripgrep mixes the two.
package search

import (
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
	crosses           bool // a match can hold \n, or depends on where the text ends
	required          [][]Literal
	finder            *finder // nil if nothing required is worth looking for
	pure              bool    // what the finder finds is a match
	starts            *finder // of what every match begins with; only if it crosses lines
	scratch           *sync.Pool
	stop              func() bool
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
	m := &Matcher{}
	if o.Multiline {
		m.crosses = crossesLines(tree)
	}
	if !m.crosses {
		if err := withinLines(tree); err != nil {
			return nil, err
		}
	}
	if m.forward, err = compile(ctx, tree, false); err != nil {
		return nil, err
	}
	if m.backward, err = compile(ctx, tree, true); err != nil {
		return nil, err
	}
	m.takeLiterals(tree)
	m.scratch = newScratch(m)
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

// Until returns a Matcher that gives up, finding nothing more, soon after
// stop begins to return true, even within one Next over a large text.
func (m *Matcher) Until(stop func() bool) *Matcher {
	bounded := *m
	bounded.stop = stop
	return &bounded
}

func (m *Matcher) takeLiterals(tree *node) {
	known := literalsOf(tree)
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
