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

const (
	maxNesting = 250     // the same as in that crate
	maxSpans   = 1 << 20 // of all classes; their part of a program is then far beyond ripgrep's limit
	eof        = rune(-1)
)

type parser struct {
	ctx   context.Context
	text  string
	at    int
	flags flags
	depth int
	parts int
	spans int // of the classes so far
	steps int // see pause
	names map[string]bool
	sets  map[string]charset // of escapes, which large patterns repeat
}

// syntaxError returns an error that describes the fault and its position, and
// how to search for the pattern as plain text.
func syntaxError(at int, format string, args ...any) error {
	return toolerr.New(toolerr.BadPattern, "%s at offset %d of the pattern; set literal=true to search for it as plain text",
		fmt.Sprintf(format, args...), at).With("offset", at)
}

func parse(ctx context.Context, pattern string, f flags) (*regexNode, error) {
	if !utf8.ValidString(pattern) {
		return nil, toolerr.New(toolerr.BadPattern, "the pattern is not UTF-8")
	}
	p := &parser{ctx: ctx, text: pattern, flags: f, names: map[string]bool{}, sets: map[string]charset{}}
	n, err := p.alternation()
	if err == nil && p.at < len(p.text) {
		err = syntaxError(p.at, "unopened group: ) without (")
	}
	return n, err
}

func (p *parser) peek() rune {
	if p.at >= len(p.text) {
		return eof
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return r
}

func (p *parser) next() rune {
	r := p.peek()
	if r != eof {
		p.at += utf8.RuneLen(r)
	}
	return r
}

func (p *parser) accept(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

// space skips blanks and comments, if the flag x is set.
func (p *parser) space() {
	for p.flags.verbose {
		switch r := p.peek(); {
		case r != eof && unicode.IsSpace(r):
			p.next()
		case r == '#':
			end := strings.IndexByte(p.text[p.at:], '\n')
			if end < 0 {
				p.at = len(p.text)
				return
			}
			p.at += end + 1
		default:
			return
		}
	}
}

func (p *parser) alternation() (*regexNode, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, syntaxError(p.at, "groups nested more than %d deep", maxNesting)
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
		if err := p.count(); err != nil {
			return nil, err
		}
	}
	if len(branches) == 1 {
		return branches[0], nil
	}
	return &regexNode{op: opAlternate, subs: branches}, nil
}

func (p *parser) concatenation() (*regexNode, error) {
	var subs []*regexNode
	repeatable := false // the last item can be repeated
	for {
		p.space()
		at := p.at
		switch p.peek() {
		case eof, '|', ')':
			return concat(subs), nil
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
			if err := p.count(); err != nil {
				return nil, err
			}
		}
	}
}

// count counts the parts of a pattern, each of which becomes an instruction. It
// fails if there are too many or the context has ended.
func (p *parser) count() error {
	if p.parts++; p.parts > maxInsts {
		return errTooManyParts()
	}
	return p.pause()
}

// pause fails if the context has ended. It is called where a step may take a
// millisecond, and checks the context at every sixteenth call.
func (p *parser) pause() error {
	if p.steps++; p.steps%16 != 0 {
		return nil
	}
	return p.ctx.Err()
}

// repetition parses an operator after sub.
func (p *parser) repetition(sub *regexNode) (*regexNode, error) {
	n := &regexNode{op: opRepeat, subs: []*regexNode{sub}, max: -1}
	switch p.next() {
	case '+':
		n.min = 1
	case '?':
		n.max = 1
	case '{':
		if err := p.bounds(n); err != nil {
			return nil, err
		}
	}
	n.lazy = p.accept("?") != p.flags.swapGreed
	return n, nil
}

func (p *parser) bounds(n *regexNode) (err error) {
	open := p.at - 1
	if n.min, err = p.decimal(open); err != nil {
		return err
	}
	n.max = n.min
	if p.accept(",") {
		p.space()
		if n.max = -1; p.peek() != '}' {
			if n.max, err = p.decimal(open); err != nil {
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

func (p *parser) decimal(open int) (int, error) {
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

// atom parses one item; it returns nil for a setting of flags, which matches
// nothing and cannot be repeated.
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
			set = set.minus(single('\n'))
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
	return p.literal(p.next()), nil
}

func (p *parser) literal(r rune) *regexNode { return &regexNode{op: opSet, set: p.folded(single(r))} }

// folded adds the other cases to set, if the flags say so.
func (p *parser) folded(set charset) charset {
	switch {
	case !p.flags.ignoreCase:
		return set
	case p.flags.unicode:
		return set.fold()
	}
	return set.foldASCII()
}
