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
	insts       []inst // the instructions
	start       int32  // instruction at which a match begins
	searchStart int32  // like start, but the match may begin later
	byBytes     bool   // symbols are bytes

	backward  bool // the program reads the text backward
	usedAttrs attr // the attributes of symbols that looks need
	alphabet  alphabet
	member    [][]bool // whether a set contains a symbol, by set and symbol
}

// inst is an instruction of a program.
type inst struct {
	op   instOp
	look uint16 // instLook: the look
	set  int32  // instStep: index of the set
	out  int32  // the next instruction
	out2 int32  // instSplit: the next one if out fails
}

// instOp is the kind of an instruction.
type instOp uint8

// The kinds of instructions.
const (
	instStep  instOp = iota // reads a symbol of a set
	instSplit               // continues at two instructions
	instLook                // continues if a look holds
	instMatch               // a match ends
	instFail                // never matches
)

// Limits of a program: some megabytes.
const (
	maxInsts = 200_000
	maxSets  = 4000
)

// compiler compiles the tree of a pattern to a program.
type compiler struct {
	prog      program
	sets      []charset            // the character sets, by id
	idByText  map[string]int32     // ids of sets, by their encoded ranges
	idByRange map[*runeRange]int32 // ids of sets that several steps share, by their first range
	reverse   bool                 // make a program that reads the text backward
	overLimit bool                 // the program would exceed maxInsts
}

// compile makes the program of a tree. If crlf is set, \r\n is one symbol. If
// reverse is set, the program reads the text backward. It returns BAD_PATTERN
// if the program would be too large or needs both a Unicode word boundary and
// single bytes, and ctx's error after ctx ends.
func compile(ctx context.Context, n *regexNode, crlf, reverse bool) (*program, error) {
	c := &compiler{idByText: map[string]int32{}, idByRange: map[*runeRange]int32{}, reverse: reverse}
	c.prog.byBytes = needsBytes(n)
	everything := c.setID(charset{{0, maxRaw}})
	match := c.addInst(inst{op: instMatch})
	c.prog.start, c.prog.backward = c.compileNode(n, match), reverse
	loop := c.addInst(inst{op: instSplit, out: c.prog.start})
	c.prog.insts[loop].out2 = c.addInst(inst{op: instStep, set: everything, out: loop})
	c.prog.searchStart = loop
	if len(c.sets) > maxSets {
		return nil, toolerr.New(toolerr.BadPattern, "the pattern is too large: it has %d different characters and classes, more than %d", len(c.sets), maxSets)
	}
	if c.overLimit {
		return nil, errTooManyParts()
	}
	return c.finish(ctx, crlf)
}

// errTooManyParts returns the BAD_PATTERN error for a pattern that exceeds maxInsts.
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

// finish divides the characters into symbols and returns the program. It returns
// BAD_PATTERN for a Unicode word boundary in a pattern that matches single bytes.
func (c *compiler) finish(ctx context.Context, crlf bool) (*program, error) {
	p := &c.prog
	for _, i := range p.insts {
		if i.op != instLook {
			continue
		}
		need := testedAttrs(look(i.look))
		if p.usedAttrs |= need; p.byBytes && need&attrWord != 0 {
			return nil, toolerr.New(toolerr.BadPattern,
				`the pattern has both a Unicode word boundary and single bytes of (?-u): write (?-u:\b)`)
		}
	}
	var err error
	p.alphabet, p.member, err = newAlphabet(ctx, c.sets, p.usedAttrs, p.byBytes, crlf)
	return p, err
}

// addInst adds an instruction and returns its index. Above maxInsts it returns
// 0 and sets overLimit.
func (c *compiler) addInst(i inst) int32 {
	if len(c.prog.insts) >= maxInsts {
		c.overLimit = true
		return 0
	}
	c.prog.insts = append(c.prog.insts, i)
	return int32(len(c.prog.insts) - 1)
}

// setID returns the index in c.sets of a set, which it adds if it is new.
func (c *compiler) setID(s charset) int32 {
	if len(s) > 1 {
		if id, ok := c.idByRange[&s[0]]; ok {
			return id
		}
	}
	key := make([]byte, 0, 8*len(s))
	for _, r := range s {
		key = append(key, byte(r.lo), byte(r.lo>>8), byte(r.lo>>16), byte(r.hi), byte(r.hi>>8), byte(r.hi>>16))
	}
	id, ok := c.idByText[string(key)]
	if !ok {
		id = int32(len(c.sets))
		c.sets = append(c.sets, s)
		c.idByText[string(key)] = id
	}
	if len(s) > 1 {
		c.idByRange[&s[0]] = id
	}
	return id
}

// compileNode adds instructions that match n and continue at next. It returns
// the index of the first.
func (c *compiler) compileNode(n *regexNode, next int32) int32 {
	if c.overLimit {
		return 0
	}
	switch n.op {
	case opSet:
		if c.prog.byBytes {
			return c.compileBytes(n.set, next)
		}
		return c.addInst(inst{op: instStep, set: c.setID(n.set), out: next})
	case opLook:
		return c.addInst(inst{op: instLook, look: uint16(n.look), out: next})
	case opConcat:
		for i := range n.subs {
			if !c.reverse {
				i = len(n.subs) - 1 - i
			}
			next = c.compileNode(n.subs[i], next)
		}
		return next
	case opAlternate:
		at := c.compileNode(n.subs[len(n.subs)-1], next)
		for _, sub := range slices.Backward(n.subs[:len(n.subs)-1]) {
			at = c.addSplit(c.compileNode(sub, next), at, false)
		}
		return at
	case opRepeat:
		return c.compileRepeat(n, next)
	}
	return next
}

// addSplit adds an instruction that prefers first to second; second to first if
// lazy is set.
func (c *compiler) addSplit(first, second int32, lazy bool) int32 {
	if lazy {
		first, second = second, first
	}
	return c.addInst(inst{op: instSplit, out: first, out2: second})
}

// compileRepeat compiles a repetition, as compileNode does.
func (c *compiler) compileRepeat(n *regexNode, next int32) int32 {
	sub, after := n.subs[0], next
	count := n.min
	switch {
	case n.max < 0:
		// x* is (x+)?, so that an x that matches the empty text keeps its rank.
		loop := c.addSplit(0, next, n.lazy)
		body := c.compileNode(sub, loop)
		if i := &c.prog.insts[loop]; n.lazy {
			i.out2 = body
		} else {
			i.out = body
		}
		if next = body; n.min == 0 {
			return c.addSplit(body, after, n.lazy)
		}
		count--
	default:
		for i := n.min; i < n.max && !c.overLimit; i++ {
			next = c.addSplit(c.compileNode(sub, next), after, n.lazy)
		}
	}
	for ; count > 0 && !c.overLimit; count-- {
		parts := len(c.prog.insts)
		if next = c.compileNode(sub, next); len(c.prog.insts) == parts { // no instructions, however often it is repeated
			break
		}
	}
	return next
}

// compileBytes adds instructions that match one member of s byte by byte and
// continue at next. It returns the index of the first.
func (c *compiler) compileBytes(s charset, next int32) int32 {
	at := int32(-1)
	branch := func(first int32) {
		if at < 0 {
			at = first
		} else {
			at = c.addSplit(first, at, false)
		}
	}
	for _, r := range s {
		if r.lo >= rawBase {
			branch(c.addInst(inst{op: instStep, set: c.setID(charset{{r.lo - rawBase, r.hi - rawBase}}), out: next}))
			continue
		}
		utf8Ranges(r.lo, min(r.hi, maxRune), func(lo, hi []byte) {
			to := next
			for i := range lo {
				if !c.reverse {
					i = len(lo) - 1 - i
				}
				to = c.addInst(inst{op: instStep, set: c.setID(charset{{rune(lo[i]), rune(hi[i])}}), out: to})
			}
			branch(to)
		})
	}
	if at < 0 {
		at = c.addInst(inst{op: instFail})
	}
	return at
}

// utf8Ranges splits a range of characters into ranges whose encodings are
// products of byte ranges, and calls yield with the first and last encoding of
// each.
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
