package linematch

// window is a range of consecutive lines of the file.
type window struct {
	score     float64 // total weight of the wanted words and lines in it
	firstLine int     // from 0
	offset    int     // of its first line
	lineCount int     // lines
}

// bestWindow returns the window of lineCount lines that has the highest score.
// Its score is 0 if the file has no wanted word.
func (v *vocabulary) bestWindow(t Text, lineCount int) window {
	type seen struct {
		start   int
		entries []*wantedEntry
	}
	ring := make([]seen, lineCount)
	var best window
	score, index := 0.0, 0
	eachLine(t, func(start int, line []byte) bool {
		slot := &ring[index%lineCount]
		for _, e := range slot.entries { // leaves the window
			if e.windowCount--; e.windowCount < e.wantedCount {
				score -= e.weight
			}
		}
		slot.start, slot.entries = start, slot.entries[:0]
		enter := func(e *wantedEntry) {
			if e == nil || len(slot.entries) == maxLineWords {
				return
			}
			if e.windowCount < e.wantedCount {
				score += e.weight
			}
			e.windowCount++
			slot.entries = append(slot.entries, e)
		}
		sum := eachWord(line, t.Checker, func(word uint64) bool {
			enter(v.words[word])
			return len(slot.entries) < maxLineWords
		})
		enter(v.lines[sum])
		if score > best.score+1e-6 {
			first := max(0, index-lineCount+1)
			best = window{score: score, firstLine: first, offset: ring[first%lineCount].start, lineCount: lineCount}
		}
		index++
		return true
	})
	return best
}
