package search

// sparse is a set of small numbers that is emptied in no time.
type sparse struct {
	dense []int32
	index []int32
}

func (s *sparse) resize(n int) { s.index = make([]int32, n) }
func (s *sparse) clear()       { s.dense = s.dense[:0] }

// add reports whether n was not in the set before.
func (s *sparse) add(n int32) bool {
	if i := s.index[n]; int(i) < len(s.dense) && s.dense[i] == n {
		return false
	}
	s.index[n] = int32(len(s.dense))
	s.dense = append(s.dense, n)
	return true
}

// maxPass is how many bytes are looked at before it is asked whether to stop.
const maxPass = 1 << 18

// forward looks for a match that begins at or behind i, where before is what
// stands before i. It returns where the preferred one of those that begin
// first ends, or, if earliest, where the first to end does; -1 if there is
// none. Beyond text is the edge.
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

// skipTo returns the state of a search that begins at the next place from i on
// that has what a match begins with, and the place, or -1.
func (d *dfa) skipTo(text []byte, i int) (int32, int) {
	if i, _ = d.skip.find(text, i); i < 0 {
		return 0, -1
	}
	return d.startAt(true, d.prog.attrBefore(text, i)), i
}

// backward returns where the longest match that ends at end begins, no
// further back than low, or -1 if it was stopped; the program is one that reads
// backwards. Before text and behind it is the edge.
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

// attrBefore returns what a look needs to know of what stands before i.
func (p *program) attrBefore(text []byte, i int) attr {
	if i == 0 {
		return attrEdge
	}
	symbol, _ := p.symbols.before(text, i)
	return p.symbols.attrOf[symbol]
}
