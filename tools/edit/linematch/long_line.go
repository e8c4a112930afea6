package linematch

// FindWithinLine returns the range of a long line that is most similar to a
// text, by the same measure as Find: from the end of the first to the end of
// the last wanted word. ok is false if the line has none of the text's words.
func FindWithinLine(line Text, wanted string) (from, to int, ok bool) {
	v := newVocabulary([]string{wanted})
	v.setWeights(line)
	type spot struct {
		at    int
		entry *wantedEntry
	}
	var window []spot
	size, best, score := len(wanted)*5/4, 0.0, 0.0
	eachWordAt(line.Body, func(word uint64, at int) bool {
		if line.Checker.Stopped(wordCost) {
			return false
		}
		e := v.words[word]
		if e == nil {
			return true
		}
		for len(window) > 0 && (at-window[0].at > size || len(window) == maxLineWords) {
			first := window[0].entry
			if first.windowCount--; first.windowCount < first.wantedCount {
				score -= first.weight
			}
			window = window[1:]
		}
		if e.windowCount < e.wantedCount {
			score += e.weight
		}
		e.windowCount++
		window = append(window, spot{at, e})
		if score > best+1e-6 {
			best, from, to, ok = score, window[0].at, at, true
		}
		return true
	})
	return from, to, ok
}
