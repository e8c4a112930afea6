package search

// maxPass is the number of bytes scanned between two checks of stop.
const maxPass = 1 << 18

// forward finds a match that begins at or after i; before has the attributes of
// the symbol before i. It returns the end of the preferred match among those
// that begin first or, if earliest is set, the end of the match that ends
// first; -1 if no match exists. The edge follows text.
func (d *dfa) forward(text []byte, i int, before attr, earliest bool) int {
	end, from := -1, i
	s := d.startAt(true, before)
	if d.skip != nil {
		if s, i = d.skipTo(text, i); i < 0 {
			return -1
		}
	}
	symbols := &d.prog.symbols
	ofByte, trans := &symbols.ofByte, d.trans
	for i <= len(text) {
		pass := min(len(text), i+maxPass)
		for i < pass {
			t := trans[uint32(s)+ofByte[text[i]]]
			if t <= 0 {
				break
			}
			s = t
			i++
		}
		if i == pass && i < len(text) {
			d.work(maxPass / 16)
		}
		symbol, size := symbols.edge, 1
		if i < len(text) {
			symbol, size = symbols.after(text, i)
		}
		t := d.step(s, symbol)
		trans = d.trans
		if d.stopped {
			return -1
		}
		if t < 0 {
			if t == dead {
				break
			}
			if t&matched != 0 {
				if end = i; earliest {
					break
				}
			} else if i+size < len(text) { // idle
				if s, i = d.skipTo(text, i+size); i < 0 {
					return -1
				}
				trans = d.trans
				continue
			}
			t &= number
		}
		s = t
		i += size
	}
	d.work(1 + (i-from)/16)
	return end
}

// skipTo returns the next position from i on at which a match may begin, with
// the state of a search there, or -1.
func (d *dfa) skipTo(text []byte, i int) (int32, int) {
	if i, _ = d.skip.find(text, i); i < 0 {
		return 0, -1
	}
	return d.startAt(true, d.prog.attrBefore(text, i)), i
}

// backward returns the start of the longest match that ends at end and begins
// at or after low, or -1 if it was stopped. The program must be a backward one.
// Edges precede and follow text.
func (d *dfa) backward(text []byte, end, low int) int {
	symbols := &d.prog.symbols
	after := attrEdge
	if end < len(text) {
		symbol, _ := symbols.after(text, end)
		after = symbols.attrOf[symbol]
	}
	start := end
	s := d.startAt(false, after)
	for i, pass := end, end-maxPass; i >= low; {
		if i < pass {
			d.work(maxPass / 16)
			pass = i - maxPass
		}
		symbol, size := symbols.edge, 1
		if i > 0 {
			symbol, size = symbols.before(text, i)
		}
		t := d.step(s, symbol)
		if d.stopped {
			return -1
		}
		if t < 0 {
			if t == dead {
				break
			}
			start = i
			t &= number
		}
		s = t
		i -= size
	}
	return start
}

// attrBefore returns the attributes of the symbol before i.
func (p *program) attrBefore(text []byte, i int) attr {
	if i == 0 {
		return attrEdge
	}
	symbol, _ := p.symbols.before(text, i)
	return p.symbols.attrOf[symbol]
}
