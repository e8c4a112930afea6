package linematch

// Within finds the part of a long line that is most similar to a text, by the
// same measure; false if the line has none of its words.
func Within(line Text, wanted string) (from, to int, ok bool) {
	v := newVocabulary([]string{wanted})
	v.weigh(line)
	type spot struct {
		at    int
		entry *entry
	}
	var window []spot
	size, best, score := len(wanted)*5/4, 0.0, 0.0
	eachWordAt(line.Body, func(word uint64, at int) bool {
		if line.Checker.Stopped(perWord) {
			return false
		}
		e := v.words[word]
		if e == nil {
			return true
		}
		for len(window) > 0 && (at-window[0].at > size || len(window) == maxLineWords) {
			first := window[0].entry
			if first.inside--; first.inside < first.wanted {
				score -= first.weight
			}
			window = window[1:]
		}
		if e.inside < e.wanted {
			score += e.weight
		}
		e.inside++
		window = append(window, spot{at, e})
		if score > best+1e-6 {
			best, from, to, ok = score, window[0].at, at, true
		}
		return true
	})
	return from, to, ok
}
