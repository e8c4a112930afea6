package search

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A program is a pattern as an automaton that can be in several states at once.
// It reads symbols: a character of the text, a byte that belongs to no
// character, or the edge of the text. Characters that the pattern does not
// distinguish share a symbol, so there are few. If a program must see single
// bytes of characters, which only (?-u) requires, its symbols are bytes.
type program struct {
	insts  []inst
	start  int32
	search int32 // like start, but the match may begin later
	bytes  bool

	backward bool // it reads the text backwards
	uses     attr // the attributes of symbols that looks need
	symbols  symbols
	member   [][]bool // by set and symbol
}

type inst struct {
	op   instOp
	arg  uint16 // of look: which
	set  int32  // of step: which
	out  int32
	out2 int32 // of split: taken if out fails
}

type instOp uint8

const (
	instStep instOp = iota
	instSplit
	instLook
	instMatch
	instFail
)

// Limits of a program: some megabytes.
const (
	maxInsts = 200_000
	maxSets  = 4000
)

type compiler struct {
	prog    program
	sets    []charset
	ids     map[string]int32
	same    map[*span]int32 // of sets that several steps share
	reverse bool
	full    bool
}

// compile makes the program of a tree; if reverse is set, it reads the text
// backwards.
func compile(ctx context.Context, n *regexNode, crlf, reverse bool) (*program, error) {
	c := &compiler{ids: map[string]int32{}, same: map[*span]int32{}, reverse: reverse}
	c.prog.bytes = needsBytes(n)
	everything := c.set(charset{{0, maxRaw}})
	match := c.add(inst{op: instMatch})
	c.prog.start, c.prog.backward = c.node(n, match), reverse
	loop := c.add(inst{op: instSplit, out: c.prog.start})
	c.prog.insts[loop].out2 = c.add(inst{op: instStep, set: everything, out: loop})
	c.prog.search = loop
	if len(c.sets) > maxSets {
		return nil, toolerr.New(toolerr.BadPattern, "the pattern is too large: it has %d different characters and classes, more than %d", len(c.sets), maxSets)
	}
	if c.full {
		return nil, errTooManyParts()
	}
	return c.finish(ctx, crlf)
}

func errTooManyParts() error {
	return toolerr.New(toolerr.BadPattern, "the pattern is too large: it has more than %d parts, with its repetitions multiplied", maxInsts)
}

// needsBytes reports whether a match of n may begin or end within a character.
func needsBytes(n *regexNode) bool {
	sets, looks, unicodeLooks := false, false, false
	n.walk(func(n *regexNode) {
		switch {
		case n.op == opSet:
			sets = sets || len(n.set) > 0 && n.set[len(n.set)-1].hi >= rawBase
		case n.op != opLook || n.look < wordBoundary:
		case n.look < wordBoundary+asciiLooks:
			unicodeLooks = true
		case n.look == notWordBoundary+asciiLooks || n.look >= wordStartHalf+asciiLooks:
			looks = true
		}
	})
	return sets || looks && !unicodeLooks
}

func (c *compiler) finish(ctx context.Context, crlf bool) (*program, error) {
	p := &c.prog
	for _, i := range p.insts {
		if i.op != instLook {
			continue
		}
		need := lookNeeds(look(i.arg))
		if p.uses |= need; p.bytes && need&attrWord != 0 {
			return nil, toolerr.New(toolerr.BadPattern,
				`the pattern has both a Unicode word boundary and single bytes of (?-u): write (?-u:\b)`)
		}
	}
	var err error
	p.symbols, p.member, err = newSymbols(ctx, c.sets, p.uses, p.bytes, crlf)
	return p, err
}

func (c *compiler) add(i inst) int32 {
	if len(c.prog.insts) >= maxInsts {
		c.full = true
		return 0
	}
	c.prog.insts = append(c.prog.insts, i)
	return int32(len(c.prog.insts) - 1)
}

func (c *compiler) set(s charset) int32 {
	if len(s) > 1 {
		if id, ok := c.same[&s[0]]; ok {
			return id
		}
	}
	key := make([]byte, 0, 8*len(s))
	for _, r := range s {
		key = append(key, byte(r.lo), byte(r.lo>>8), byte(r.lo>>16), byte(r.hi), byte(r.hi>>8), byte(r.hi>>16))
	}
	id, ok := c.ids[string(key)]
	if !ok {
		id = int32(len(c.sets))
		c.sets = append(c.sets, s)
		c.ids[string(key)] = id
	}
	if len(s) > 1 {
		c.same[&s[0]] = id
	}
	return id
}

// node adds instructions that match n and continue at next, and returns the
// first.
func (c *compiler) node(n *regexNode, next int32) int32 {
	if c.full {
		return 0
	}
	switch n.op {
	case opSet:
		if c.prog.bytes {
			return c.byteSet(n.set, next)
		}
		return c.add(inst{op: instStep, set: c.set(n.set), out: next})
	case opLook:
		return c.add(inst{op: instLook, arg: uint16(n.look), out: next})
	case opConcat:
		for i := range n.subs {
			if !c.reverse {
				i = len(n.subs) - 1 - i
			}
			next = c.node(n.subs[i], next)
		}
		return next
	case opAlternate:
		at := c.node(n.subs[len(n.subs)-1], next)
		for _, sub := range slices.Backward(n.subs[:len(n.subs)-1]) {
			at = c.split(c.node(sub, next), at, false)
		}
		return at
	case opRepeat:
		return c.repeat(n, next)
	}
	return next
}

func (c *compiler) split(first, second int32, lazy bool) int32 {
	if lazy {
		first, second = second, first
	}
	return c.add(inst{op: instSplit, out: first, out2: second})
}

func (c *compiler) repeat(n *regexNode, next int32) int32 {
	sub, after := n.subs[0], next
	count := n.min
	switch {
	case n.max < 0:
		// x* is (x+)?, so that an x that matches the empty text keeps its rank.
		loop := c.split(0, next, n.lazy)
		body := c.node(sub, loop)
		if i := &c.prog.insts[loop]; n.lazy {
			i.out2 = body
		} else {
			i.out = body
		}
		if next = body; n.min == 0 {
			return c.split(body, after, n.lazy)
		}
		count--
	default:
		for i := n.min; i < n.max && !c.full; i++ {
			next = c.split(c.node(sub, next), after, n.lazy)
		}
	}
	for ; count > 0 && !c.full; count-- {
		parts := len(c.prog.insts)
		if next = c.node(sub, next); len(c.prog.insts) == parts { // no instructions, however often it is repeated
			break
		}
	}
	return next
}

// byteSet adds instructions that match one member of s byte by byte.
func (c *compiler) byteSet(s charset, next int32) int32 {
	at := int32(-1)
	branch := func(first int32) {
		if at < 0 {
			at = first
		} else {
			at = c.split(first, at, false)
		}
	}
	for _, r := range s {
		if r.lo >= rawBase {
			branch(c.add(inst{op: instStep, set: c.set(charset{{r.lo - rawBase, r.hi - rawBase}}), out: next}))
			continue
		}
		utf8Ranges(r.lo, min(r.hi, maxRune), func(lo, hi []byte) {
			to := next
			for i := range lo {
				if !c.reverse {
					i = len(lo) - 1 - i
				}
				to = c.add(inst{op: instStep, set: c.set(charset{{rune(lo[i]), rune(hi[i])}}), out: to})
			}
			branch(to)
		})
	}
	if at < 0 {
		at = c.add(inst{op: instFail})
	}
	return at
}

// utf8Ranges splits a range of characters into ranges whose encodings are
// products of byte ranges.
func utf8Ranges(lo, hi rune, yield func(lo, hi []byte)) {
	for _, last := range []rune{0x7F, 0x7FF, 0xD7FF, 0xFFFF} {
		if lo <= last && last < hi {
			utf8Ranges(lo, last, yield)
			if lo = last + 1; last == 0xD7FF {
				lo = max(lo, 0xE000)
			}
		}
	}
	for shift := 6; shift <= 18; shift += 6 {
		mask := rune(1)<<shift - 1
		if lo&^mask == hi&^mask {
			break
		}
		if lo&mask != 0 {
			utf8Ranges(lo, lo|mask, yield)
			utf8Ranges(lo|mask+1, hi, yield)
			return
		}
		if hi&mask != mask {
			utf8Ranges(lo, hi&^mask-1, yield)
			utf8Ranges(hi&^mask, hi, yield)
			return
		}
	}
	if lo <= hi && utf8.ValidRune(lo) {
		yield(utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi))
	}
}
