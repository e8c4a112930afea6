package search

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The parser parses the syntax of Rust's regex crate, which ripgrep uses.

// Limits of patterns.
const (
	maxNesting = 250 // groups in groups; the same as in that crate
	// ranges of all classes together; their part of a program is then far
	// above ripgrep's limit
	maxClassRanges = 1 << 20
	eof            = rune(-1) // what peek and next return at the end
)

// parser parses a pattern into a tree, by recursive descent.
type parser struct {
	ctx          context.Context
	text         string
	pos          int   // offset of the next character
	flags        flags // at pos
	depth        int   // of groups and brackets
	parts        int   // number of parts so far
	classRanges  int   // number of ranges of all classes so far
	contextCalls int   // calls of checkContext
	groupNames   map[string]bool
	escapeSets   map[string]charset // sets of escapes, by cachedSet's key; large patterns repeat them
}

// syntaxError returns BAD_PATTERN with a description of the fault, its
// position, and advice on searching for the pattern as plain text.
func syntaxError(at int, format string, args ...any) error {
	return toolerr.New(toolerr.BadPattern, "%s at offset %d of the pattern; set literal=true to search for it as plain text",
		fmt.Sprintf(format, args...), at).With("offset", at)
}

// parse parses a pattern into a tree. It returns BAD_PATTERN, or ctx's error
// after ctx ends.
func parse(ctx context.Context, pattern string, f flags) (*regexNode, error) {
	if !utf8.ValidString(pattern) {
		return nil, toolerr.New(toolerr.BadPattern, "the pattern is not UTF-8")
	}
	p := &parser{ctx: ctx, text: pattern, flags: f, groupNames: map[string]bool{}, escapeSets: map[string]charset{}}
	n, err := p.alternation()
	if err == nil && p.pos < len(p.text) {
		err = syntaxError(p.pos, "unopened group: ) without (")
	}
	return n, err
}

// peek returns the next character, or eof.
func (p *parser) peek() rune {
	if p.pos >= len(p.text) {
		return eof
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return r
}

// next consumes and returns the next character, or returns eof.
func (p *parser) next() rune {
	r := p.peek()
	if r != eof {
		p.pos += utf8.RuneLen(r)
	}
	return r
}

// accept consumes s and returns true, if the rest of the pattern begins with
// it.
func (p *parser) accept(s string) bool {
	if strings.HasPrefix(p.text[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

// skipSpace consumes blanks and comments, if the flag x is set.
func (p *parser) skipSpace() {
	for p.flags.verbose {
		switch r := p.peek(); {
		case r != eof && unicode.IsSpace(r):
			p.next()
		case r == '#':
			end := strings.IndexByte(p.text[p.pos:], '\n')
			if end < 0 {
				p.pos = len(p.text)
				return
			}
			p.pos += end + 1
		default:
			return
		}
	}
}

// alternation parses branches separated by |.
func (p *parser) alternation() (*regexNode, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, syntaxError(p.pos, "groups nested more than %d deep", maxNesting)
	}
	defer func() { p.depth-- }()
	var branches []*regexNode
	for {
		branch, err := p.concatenation()
		if err != nil {
			return nil, err
		}
		branches = append(branches, branch)
		if !p.accept("|") {
			break
		}
		if err := p.countPart(); err != nil {
			return nil, err
		}
	}
	if len(branches) == 1 {
		return branches[0], nil
	}
	return &regexNode{op: opAlternate, subs: branches}, nil
}

// concatenation parses items one after the other, up to |, ) or the end.
func (p *parser) concatenation() (*regexNode, error) {
	var subs []*regexNode
	repeatable := false // the last item can be repeated
	for {
		p.skipSpace()
		at := p.pos
		switch p.peek() {
		case eof, '|', ')':
			return newConcat(subs), nil
		case '*', '+', '?', '{':
			if !repeatable {
				return nil, syntaxError(at, "nothing to repeat before %c", p.peek())
			}
			last := &subs[len(subs)-1]
			repeated, err := p.repetition(*last)
			if err != nil {
				return nil, err
			}
			*last = repeated
		default:
			n, err := p.atom()
			if err != nil {
				return nil, err
			}
			if repeatable = n != nil; repeatable {
				subs = append(subs, n)
			}
			if err := p.countPart(); err != nil {
				return nil, err
			}
		}
	}
}

// countPart counts the parts of a pattern, each of which becomes an
// instruction. It returns an error if there are too many, or if the context has
// ended.
func (p *parser) countPart() error {
	if p.parts++; p.parts > maxInsts {
		return errTooManyParts()
	}
	return p.checkContext()
}

// checkContext returns the context's error after it has ended. It is called
// where a step may take a millisecond, and checks the context at every
// sixteenth call.
func (p *parser) checkContext() error {
	if p.contextCalls++; p.contextCalls%16 != 0 {
		return nil
	}
	return p.ctx.Err()
}

// repetition parses a repetition operator (*, +, ?, {n,m}) after sub, if there
// is one, and returns the repetition or sub.
func (p *parser) repetition(sub *regexNode) (*regexNode, error) {
	n := &regexNode{op: opRepeat, subs: []*regexNode{sub}, max: -1}
	switch p.next() {
	case '+':
		n.min = 1
	case '?':
		n.max = 1
	case '{':
		if err := p.repetitionBounds(n); err != nil {
			return nil, err
		}
	}
	n.lazy = p.accept("?") != p.flags.swapGreed
	return n, nil
}

// repetitionBounds parses the rest of {min,max} into n.
func (p *parser) repetitionBounds(n *regexNode) (err error) {
	open := p.pos - 1
	if n.min, err = p.repetitionCount(open); err != nil {
		return err
	}
	n.max = n.min
	if p.accept(",") {
		p.skipSpace()
		if n.max = -1; p.peek() != '}' {
			if n.max, err = p.repetitionCount(open); err != nil {
				return err
			}
		}
	}
	if !p.accept("}") {
		return syntaxError(open, "unclosed repetition {")
	}
	if n.max >= 0 && n.min > n.max {
		return syntaxError(open, "repetition {%d,%d} has its minimum above its maximum", n.min, n.max)
	}
	return nil
}

// repetitionCount parses a number, with blanks around it. open is the offset of
// the brace.
func (p *parser) repetitionCount(open int) (int, error) {
	blanks := func() {
		for r := p.peek(); r != eof && unicode.IsSpace(r); r = p.peek() {
			p.next()
		}
	}
	blanks()
	n, digits := 0, 0
	for r := p.peek(); r >= '0' && r <= '9'; r = p.peek() {
		if n = n*10 + int(r-'0'); n > 1<<32 {
			return 0, syntaxError(open, "repetition count too large")
		}
		digits++
		p.next()
	}
	blanks()
	if digits == 0 {
		return 0, syntaxError(open, "{ without a count after it (write \\{ for a literal brace)")
	}
	return n, nil
}

// atom parses one item of a concatenation: a character, class, group, escape or
// look. It returns nil for a setting of flags, which matches nothing and cannot
// be repeated.
func (p *parser) atom() (*regexNode, error) {
	switch p.peek() {
	case '(':
		return p.group()
	case '[':
		set, err := p.class()
		return &regexNode{op: opSet, set: set}, err
	case '\\':
		return p.escape()
	case '.':
		p.next()
		set := anyRune()
		if !p.flags.unicode {
			set = anyByte()
		}
		if !p.flags.dotAll {
			set = set.minus(singleRune('\n'))
		}
		return &regexNode{op: opSet, set: set}, nil
	case '^', '$':
		l := lineStart
		if p.next() == '$' {
			l = lineEnd
		}
		if !p.flags.perLine {
			l += textStart - lineStart
		}
		return &regexNode{op: opLook, look: l}, nil
	}
	return p.literalNode(p.next()), nil
}

// literalNode returns a node that matches one character, in any case if the
// flags say so.
func (p *parser) literalNode(r rune) *regexNode {
	return &regexNode{op: opSet, set: p.applyCase(singleRune(r))}
}

// applyCase returns set, with the other cases of its members if the flags say
// so.
func (p *parser) applyCase(set charset) charset {
	switch {
	case !p.flags.ignoreCase:
		return set
	case p.flags.unicode:
		return set.foldCase()
	}
	return set.foldASCII()
}
