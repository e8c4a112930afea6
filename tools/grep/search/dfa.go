package search

import (
	"encoding/binary"
	"slices"
)

// A dfa runs a program with one step per byte. States are made when the text
// first leads to them: each is a list of positions in the program, in order of
// preference, and the attributes of the previous symbol that looks need. A
// match is noticed one symbol late, when the symbol after it is known.
//
// The states take bounded memory. When it is full, all are dropped except the
// current one, so that even a pattern that makes a new state at every symbol
// costs no more than the steps of its program. A dfa serves one search at a
// time.
type dfa struct {
	prog    *program
	longest bool    // every match counts, not only the preferred one
	skip    *finder // finds the beginnings of matches, or nil
	trans   []int32
	stride  int32
	states  []dfaState
	places  []int32 // of all states
	ids     map[string]int32
	starts  [2][attrs]int32 // for a match that begins at the position, or anywhere after it

	now, then   sparse // positions visited in a step
	list, stack []int32
	key         []byte
	spent       int // work since stop was last called
	stop        func() bool
	stopped     bool
}

type dfaState struct {
	from, to int32 // within places
	before   attr
}

// A transition is 0 if it is unknown, otherwise the number of the state times
// the stride. The sign bit marks special cases: a match ended before the
// symbol; the new state equals the state at the beginning of a search; or, with
// no other bit, there was no match and will be none.
const (
	special   = int32(-1) << 31
	matched   = int32(1) << 30
	idle      = int32(1) << 29
	dead      = special
	number    = idle - 1
	deadState = 1
)

// Limits of one dfa: a few megabytes.
const (
	maxTrans  = 1 << 18
	maxPlaces = 1 << 18
)

func newDFA(p *program, longest bool) *dfa {
	d := &dfa{
		prog: p, longest: longest, stride: int32(p.symbols.count),
		ids: map[string]int32{},
	}
	d.now.resize(len(p.insts))
	d.then.resize(len(p.insts))
	d.reset()
	return d
}

func (d *dfa) reset() {
	d.trans = append(d.trans[:0], make([]int32, 2*d.stride)...)
	for i := range d.stride {
		d.trans[d.stride*deadState+i] = dead
	}
	d.states = append(d.states[:0], dfaState{}, dfaState{})
	d.places = d.places[:0]
	clear(d.ids)
	d.starts = [2][attrs]int32{}
}

// startAt returns the state of a search that begins after a symbol with the
// given attributes. The match must begin there as well, or may begin anywhere
// later.
func (d *dfa) startAt(anywhere bool, before attr) int32 {
	before &= d.prog.uses
	known, at := &d.starts[0][before], d.prog.start
	if anywhere {
		known, at = &d.starts[1][before], d.prog.search
	}
	if *known == 0 {
		d.list, d.stack = d.list[:0], d.stack[:0]
		d.then.clear()
		d.enter(at)
		*known = d.state(d.list, before)
	}
	return *known
}

// step returns the transition of state s (its number times the stride) at a
// symbol, and computes it if needed.
func (d *dfa) step(s int32, symbol uint32) int32 {
	if t := d.trans[s+int32(symbol)]; t != 0 {
		return t
	}
	if len(d.trans) > maxTrans+2*int(d.stride) || len(d.places) > maxPlaces {
		s = d.keepOnly(s)
	}
	state := d.states[s/d.stride]
	after := d.prog.symbols.attrOf[symbol]
	d.list = d.list[:0]
	d.now.clear()
	d.then.clear()
	match, cut := false, false
	left, right := state.before, after
	if d.prog.backward {
		left, right = right, left
	}
	for i := state.from; i < state.to && !cut; i++ {
		if d.advance(d.places[i], left, right, symbol) {
			match, cut = true, !d.longest
		}
	}
	d.work(int(state.to-state.from) + len(d.list) + 8)
	t := d.state(d.list, after&d.prog.uses)
	switch {
	case match:
		t |= special | matched
	case t == d.stride*deadState:
		t = dead
	case d.skip != nil && d.begins(t):
		t |= special | idle
	}
	d.trans[s+int32(symbol)] = t
	return t
}

// work counts units of some nanoseconds and calls stop from time to time.
func (d *dfa) work(units int) {
	if d.spent += units; d.spent > 1<<16 && d.stop != nil {
		d.spent = 0
		d.stopped = d.stopped || d.stop()
	}
}

// begins reports whether t is the state of a search at its beginning, whatever
// the previous symbol.
func (d *dfa) begins(t int32) bool {
	start := d.states[d.startAt(true, 0)/d.stride]
	state := d.states[t/d.stride]
	return slices.Equal(d.places[start.from:start.to], d.places[state.from:state.to])
}

// advance moves one position over a symbol, through the looks that hold, and
// reports whether it reached a match. Then less preferred positions are not
// advanced.
func (d *dfa) advance(at int32, left, right attr, symbol uint32) (match bool) {
	d.stack = append(d.stack[:0], at)
	for len(d.stack) > 0 {
		at := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if !d.now.add(at) {
			continue
		}
		switch i := &d.prog.insts[at]; i.op {
		case instStep:
			if d.prog.member[i.set][symbol] {
				d.enter(i.out)
			}
		case instSplit:
			d.stack = append(d.stack, i.out2, i.out)
		case instLook:
			if look(i.arg).holds(left, right) {
				d.stack = append(d.stack, i.out)
			}
		case instMatch:
			if match = true; !d.longest {
				return true
			}
		}
	}
	return match
}

// enter adds to the list the steps and matches that are reachable from at. If
// the program has looks, it adds at itself: positions behind a look must be
// added in order of preference, once it is known whether the look holds.
func (d *dfa) enter(at int32) {
	depth := len(d.stack)
	d.stack = append(d.stack, at)
	for len(d.stack) > depth {
		at := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if !d.then.add(at) {
			continue
		}
		switch i := &d.prog.insts[at]; {
		case i.op == instSplit && d.prog.uses == 0:
			d.stack = append(d.stack, i.out2, i.out)
		case i.op != instFail:
			d.list = append(d.list, at)
		}
	}
}

// state returns the state with these positions, times the stride.
func (d *dfa) state(places []int32, before attr) int32 {
	if len(places) == 0 {
		return d.stride * deadState
	}
	if !d.longest { // positions after a match are never preferred
		for i, at := range places {
			if d.prog.insts[at].op == instMatch {
				places = places[:i+1]
				break
			}
		}
	}
	d.key = append(d.key[:0], byte(before))
	for _, at := range places {
		d.key = binary.LittleEndian.AppendUint32(d.key, uint32(at))
	}
	if id, ok := d.ids[string(d.key)]; ok {
		return id
	}
	id := int32(len(d.states)) * d.stride
	from := int32(len(d.places))
	d.places = append(d.places, places...)
	d.states = append(d.states, dfaState{from, int32(len(d.places)), before})
	for range d.stride {
		d.trans = append(d.trans, 0)
	}
	d.ids[string(d.key)] = id
	return id
}

// keepOnly drops every state except s, and returns the new number of s.
func (d *dfa) keepOnly(s int32) int32 {
	state := d.states[s/d.stride]
	places := append([]int32(nil), d.places[state.from:state.to]...)
	d.reset()
	return d.state(places, state.before)
}
