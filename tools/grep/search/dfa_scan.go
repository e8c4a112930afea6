package search

// stopCheckBytes is the number of bytes scanned between two calls of stop.
const stopCheckBytes = 1 << 18

// findEnd returns the end of the first match that begins at or after i, and -1
// if there is no match or the search was stopped. before has the attributes of
// the symbol before i. Among the matches that begin at the same position, it
// takes the preferred one. If earliest is set, it returns the end of the match
// that ends first, wherever that begins. The symbol after text is the edge.
func (d *dfa) findEnd(text []byte, i int, before attr, earliest bool) int {
	end, from := -1, i
	s := d.startState(true, before)
	if d.startFinder != nil {
		if s, i = d.skipToStart(text, i); i < 0 {
			return -1
		}
	}
	symbols := &d.prog.alphabet
	ofByte, trans := &symbols.byteSymbols, d.transitions
	for i <= len(text) {
		pass := min(len(text), i+stopCheckBytes)
		for i < pass {
			t := trans[uint32(s)+ofByte[text[i]]]
			if t <= 0 {
				break
			}
			s = t
			i++
		}
		if i == pass && i < len(text) {
			d.addWork(stopCheckBytes / 16)
		}
		symbol, size := symbols.edge, 1
		if i < len(text) {
			symbol, size = symbols.symbolAfter(text, i)
		}
		t := d.transition(s, symbol)
		trans = d.transitions
		if d.stopped {
			return -1
		}
		if t < 0 {
			if t == dead {
				break
			}
			if t&matchedBit != 0 {
				if end = i; earliest {
					break
				}
			} else if i+size < len(text) { // idle
				if s, i = d.skipToStart(text, i+size); i < 0 {
					return -1
				}
				trans = d.transitions
				continue
			}
			t &= stateMask
		}
		s = t
		i += size
	}
	d.addWork(1 + (i-from)/16)
	return end
}

// skipToStart returns the first position at or after i where a match may begin,
// with the state of a search there. The position is -1 if there is none.
func (d *dfa) skipToStart(text []byte, i int) (state int32, at int) {
	if at, _ = d.startFinder.find(text, i); at < 0 {
		return 0, -1
	}
	return d.startState(true, d.prog.attrBefore(text, at)), at
}

// findStart returns the start of the longest match that ends at end and begins
// at or after low, and -1 if the search was stopped. Such a match must exist.
// The program must be a backward one. The symbols before and after text are
// edges.
func (d *dfa) findStart(text []byte, end, low int) int {
	symbols := &d.prog.alphabet
	after := attrEdge
	if end < len(text) {
		symbol, _ := symbols.symbolAfter(text, end)
		after = symbols.attrs[symbol]
	}
	start := end
	s := d.startState(false, after)
	for i, pass := end, end-stopCheckBytes; i >= low; {
		if i < pass {
			d.addWork(stopCheckBytes / 16)
			pass = i - stopCheckBytes
		}
		symbol, size := symbols.edge, 1
		if i > 0 {
			symbol, size = symbols.symbolBefore(text, i)
		}
		t := d.transition(s, symbol)
		if d.stopped {
			return -1
		}
		if t < 0 {
			if t == dead {
				break
			}
			start = i
			t &= stateMask
		}
		s = t
		i -= size
	}
	return start
}

// attrBefore returns the attributes of the symbol before text[i]; of the edge
// if i is 0.
func (p *program) attrBefore(text []byte, i int) attr {
	if i == 0 {
		return attrEdge
	}
	symbol, _ := p.alphabet.symbolBefore(text, i)
	return p.alphabet.attrs[symbol]
}
