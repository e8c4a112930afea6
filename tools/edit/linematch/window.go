package linematch

// window is a range of lines of the file.
type window struct {
	score float64
	first int // line, from 0
	start int // offset
	size  int // lines
}

// best slides a window over the file and returns the one with the highest
// score.
func (v *vocabulary) best(t Text, size int) window {
	type seen struct {
		start   int
		entries []*entry
	}
	ring := make([]seen, size)
	var best window
	score, index := 0.0, 0
	eachLine(t, func(start int, line []byte) bool {
		slot := &ring[index%size]
		for _, e := range slot.entries { // leaves the window
			if e.inside--; e.inside < e.wanted {
				score -= e.weight
			}
		}
		slot.start, slot.entries = start, slot.entries[:0]
		enter := func(e *entry) {
			if e == nil || len(slot.entries) == maxLineWords {
				return
			}
			if e.inside < e.wanted {
				score += e.weight
			}
			e.inside++
			slot.entries = append(slot.entries, e)
		}
		sum := eachWord(line, t.Checker, func(word uint64) bool {
			enter(v.words[word])
			return len(slot.entries) < maxLineWords
		})
		enter(v.lines[sum])
		if score > best.score+1e-6 {
			first := max(0, index-size+1)
			best = window{score: score, first: first, start: ring[first%size].start, size: size}
		}
		index++
		return true
	})
	return best
}
