package search

import (
	"encoding/binary"
	"slices"
)

// A dfa runs a program with one step for each byte. It computes a state when
// the text first leads to it: a list of positions in the program, in order of
// preference, and the attributes of the previous symbol that looks need. A
// match is noticed one symbol late, when the symbol after it is known.
//
// The states take bounded memory. When it is full, all states except the
// current one are dropped. So even a pattern that needs a new state at every
// symbol costs no more than the steps of its program. A dfa serves one search
// at a time.
type dfa struct {
	prog        *program
	longest     bool    // every match counts, not only the preferred one
	startFinder *finder // finds the beginnings of matches; nil: not used
	transitions []int32 // by state and symbol; 0: not computed
	stride      int32   // number of symbols, the length of a state's row in transitions
	states      []dfaState
	positions   []int32                // of all states, in the program
	ids         map[string]int32       // states by their key: attributes and positions
	startStates [2][attrSetCount]int32 // for a match that begins at the position, or anywhere after it; 0: not computed

	expanded sparseSet   // positions advanced in this step
	entered  sparseSet   // positions reached by this step
	reached  []int32     // steps and matches in entered, in order of preference
	stack    []int32     // positions to follow
	key      []byte      // buffer for a key of ids
	workDone int         // units of work since stop was last called
	stop     func() bool // the search ends when it returns true; nil: never
	stopped  bool        // stop returned true
}

// dfaState is a state of a dfa.
type dfaState struct {
	from, to int32 // its range in dfa.positions
	before   attr  // of the symbol before it, as far as looks need them
}

// A transition is 0 if it is not computed. Otherwise it is the number of the
// next state times the stride, and special cases have further bits: the sign
// bit, and matchedBit if a match ended before the symbol, or restartBit if the
// next state equals the state at the beginning of a search. The sign bit alone
// means that there was no match and will be none.
const (
	specialBit = int32(-1) << 31
	matchedBit = int32(1) << 30
	restartBit = int32(1) << 29
	dead       = specialBit
	stateMask  = restartBit - 1
	deadState  = 1
)

// Limits of one dfa: a few megabytes.
const (
	maxTransitions = 1 << 18
	maxPositions   = 1 << 18
)

// newDFA returns an automaton for a program. longest means that every match
// counts, instead of only the preferred one.
func newDFA(p *program, longest bool) *dfa {
	d := &dfa{
		prog: p, longest: longest, stride: int32(p.alphabet.count),
		ids: map[string]int32{},
	}
	d.expanded.setMax(len(p.insts))
	d.entered.setMax(len(p.insts))
	d.reset()
	return d
}

// reset drops all computed states, for example before another search.
func (d *dfa) reset() {
	d.transitions = append(d.transitions[:0], make([]int32, 2*d.stride)...)
	for i := range d.stride {
		d.transitions[d.stride*deadState+i] = dead
	}
	d.states = append(d.states[:0], dfaState{}, dfaState{})
	d.positions = d.positions[:0]
	clear(d.ids)
	d.startStates = [2][attrSetCount]int32{}
}

// startState returns the state of a search that begins after a symbol with the
// given attributes. If anywhere is set, the match may begin at any later
// position, too.
func (d *dfa) startState(anywhere bool, before attr) int32 {
	before &= d.prog.usedAttrs
	known, at := &d.startStates[0][before], d.prog.start
	if anywhere {
		known, at = &d.startStates[1][before], d.prog.searchStart
	}
	if *known == 0 {
		d.reached, d.stack = d.reached[:0], d.stack[:0]
		d.entered.clear()
		d.addReachable(at)
		*known = d.stateOf(d.reached, before)
	}
	return *known
}

// transition returns the transition of state s (its number times the stride) at
// a symbol, and computes it if necessary. If memory is full, that drops the
// other states: slices of d.transitions are invalid afterwards.
func (d *dfa) transition(s int32, symbol uint32) int32 {
	if t := d.transitions[s+int32(symbol)]; t != 0 {
		return t
	}
	if len(d.transitions) > maxTransitions+2*int(d.stride) || len(d.positions) > maxPositions {
		s = d.keepOnly(s)
	}
	state := d.states[s/d.stride]
	after := d.prog.alphabet.attrs[symbol]
	d.reached = d.reached[:0]
	d.expanded.clear()
	d.entered.clear()
	match, cut := false, false
	left, right := state.before, after
	if d.prog.backward {
		left, right = right, left
	}
	for i := state.from; i < state.to && !cut; i++ {
		if d.advance(d.positions[i], left, right, symbol) {
			match, cut = true, !d.longest
		}
	}
	d.addWork(int(state.to-state.from) + len(d.reached) + 8)
	t := d.stateOf(d.reached, after&d.prog.usedAttrs)
	switch {
	case match:
		t |= specialBit | matchedBit
	case t == d.stride*deadState:
		t = dead
	case d.startFinder != nil && d.isStart(t):
		t |= specialBit | restartBit
	}
	d.transitions[s+int32(symbol)] = t
	return t
}

// addWork counts work, in units of some nanoseconds, and calls stop from time
// to time.
func (d *dfa) addWork(units int) {
	if d.workDone += units; d.workDone > 1<<16 && d.stop != nil {
		d.workDone = 0
		d.stopped = d.stopped || d.stop()
	}
}

// isStart reports whether the transition t leads to the state of a search at
// its beginning, whatever the previous symbol was.
func (d *dfa) isStart(t int32) bool {
	start := d.states[d.startState(true, 0)/d.stride]
	state := d.states[t/d.stride]
	return slices.Equal(d.positions[start.from:start.to], d.positions[state.from:state.to])
}

// advance moves one position over a symbol, through the looks that hold between
// attributes left and right, and reports whether it reached a match. If it did,
// less preferred positions need not be advanced, unless d.longest is set.
func (d *dfa) advance(at int32, left, right attr, symbol uint32) (match bool) {
	d.stack = append(d.stack[:0], at)
	for len(d.stack) > 0 {
		at := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if !d.expanded.add(at) {
			continue
		}
		switch i := &d.prog.insts[at]; i.op {
		case instStep:
			if d.prog.member[i.set][symbol] {
				d.addReachable(i.out)
			}
		case instSplit:
			d.stack = append(d.stack, i.out2, i.out)
		case instLook:
			if look(i.look).holds(left, right) {
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

// addReachable adds to d.reached the steps and matches that are reachable from
// at. If the program has looks, it only adds at itself: positions after a look
// must be added in order of preference, once it is known whether the look
// holds.
func (d *dfa) addReachable(at int32) {
	depth := len(d.stack)
	d.stack = append(d.stack, at)
	for len(d.stack) > depth {
		at := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if !d.entered.add(at) {
			continue
		}
		switch i := &d.prog.insts[at]; {
		case i.op == instSplit && d.prog.usedAttrs == 0:
			d.stack = append(d.stack, i.out2, i.out)
		case i.op != instFail:
			d.reached = append(d.reached, at)
		}
	}
}

// stateOf returns the state with these positions, times the stride. It adds the
// state if it is new.
func (d *dfa) stateOf(places []int32, before attr) int32 {
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
	from := int32(len(d.positions))
	d.positions = append(d.positions, places...)
	d.states = append(d.states, dfaState{from, int32(len(d.positions)), before})
	for range d.stride {
		d.transitions = append(d.transitions, 0)
	}
	d.ids[string(d.key)] = id
	return id
}

// keepOnly drops every state except s, and returns the new number of s times
// the stride.
func (d *dfa) keepOnly(s int32) int32 {
	state := d.states[s/d.stride]
	places := append([]int32(nil), d.positions[state.from:state.to]...)
	d.reset()
	return d.stateOf(places, state.before)
}
