package search

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"
)

// alphabet maps a text to symbols. Symbol 0 is reserved: it marks bytes that
// need further bytes to determine the symbol.
type alphabet struct {
	byteSymbols [256]uint32       // by byte; 0: further bytes decide
	runStarts   []rune            // first characters of the runs with one symbol, beyond ASCII
	runSymbols  []uint32          // symbols of these runs
	pages       [256]*[256]uint32 // symbols of the first 65 536 characters, by high and low byte
	attrs       []attr            // attributes by symbol
	count       int               // number of symbols
	invalid     uint32            // the symbol of a byte that belongs to no character
	edge        uint32            // the symbol of the beginning and the end of the text

	crlf bool   // \r\n is one symbol, the same as \n
	cr   uint32 // with crlf: the symbol of a \r without a following \n
	lf   uint32 // the symbol of \n
}

// newAlphabet divides all characters into symbols: two characters share a
// symbol if the same sets contain them and they have the same attributes, as
// far as looks need these. member has, for each set, whether it contains a
// symbol.
func newAlphabet(ctx context.Context, sets []charset, uses attr, bytes, crlf bool) (a alphabet, member [][]bool, err error) {
	type event struct {
		at  rune
		set int
	}
	all := append(slices.Clone(sets), singleRune('\n'))
	word := asciiWordSet()
	if uses&attrWord != 0 {
		word = wordSet()
		all = append(all, word)
	}
	if uses&attrASCIIWord != 0 {
		all = append(all, asciiWordSet())
	}
	events := []event{{0, -1}, {0x80, -1}, {rawBase, -1}}
	for id, set := range all {
		for _, r := range set {
			events = append(events, event{r.lo, id}, event{r.hi + 1, id})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	s := alphabet{count: 1, attrs: []attr{0}, crlf: crlf}
	member = make([][]bool, len(sets))
	for i := range member {
		member[i] = []bool{false}
	}
	inside, known := make([]bool, len(all)), map[string]uint32{}
	newSymbol := func(r rune) uint32 {
		for i := range member {
			member[i] = append(member[i], inside[i])
		}
		s.attrs = append(s.attrs, attrsOf(r, word))
		s.count++
		return uint32(s.count - 1)
	}
	for i := 0; i < len(events); {
		if s.count%64 == 0 && ctx.Err() != nil {
			return alphabet{}, nil, ctx.Err()
		}
		at := events[i].at
		for ; i < len(events) && events[i].at == at; i++ {
			if events[i].set >= 0 {
				inside[events[i].set] = !inside[events[i].set]
			}
		}
		if at >= rawBase {
			break
		}
		key := make([]byte, len(inside))
		for j, in := range inside {
			if in {
				key[j] = 1
			}
		}
		id, ok := known[string(key)]
		if !ok {
			id = newSymbol(at)
			known[string(key)] = id
		}
		until := rune(256)
		if i < len(events) {
			until = min(until, events[i].at)
		}
		for b := at; b < until && (bytes || b < 0x80); b++ {
			s.byteSymbols[b] = id
		}
		if at >= 0x80 {
			s.runStarts, s.runSymbols = append(s.runStarts, at), append(s.runSymbols, id)
		}
	}
	s.addSpecialSymbols(sets, member)
	s.fillPages()
	s.lf = s.byteSymbols['\n']
	if crlf { // the symbol of \r depends on the next byte: see after
		s.cr, s.byteSymbols['\r'] = s.byteSymbols['\r'], 0
	}
	return s, member, nil
}

// addSpecialSymbols adds the two symbols that are not characters: the invalid
// byte, which only the search's own step matches, and the edge.
func (s *alphabet) addSpecialSymbols(sets []charset, member [][]bool) {
	s.invalid, s.edge = uint32(s.count), uint32(s.count+1)
	for i, set := range sets {
		whole := len(set) == 1 && set[0].lo == 0 && set[0].hi == maxRaw
		member[i] = append(member[i], whole, false)
	}
	s.attrs = append(s.attrs, attrInvalid, attrEdge)
	s.count += 2
}

// fillPages precomputes the symbols of the first 65 536 characters. Pages with
// a single symbol share memory.
func (s *alphabet) fillPages() {
	uniform := map[uint32]*[256]uint32{}
	for i := range s.pages {
		lo := max(rune(i)<<8, 0x80)
		first, last := s.runOf(lo), s.runOf(rune(i)<<8|0xFF)
		page := uniform[s.runSymbols[first]]
		if first != last || page == nil {
			page = new([256]uint32)
			for run := first; run <= last; run++ {
				end := rune(i)<<8 | 0xFF
				if run < last {
					end = s.runStarts[run+1] - 1
				}
				for r := max(lo, s.runStarts[run]); r <= end; r++ {
					page[r&0xFF] = s.runSymbols[run]
				}
			}
			if first == last && i > 0 {
				uniform[s.runSymbols[first]] = page
			}
		}
		s.pages[i] = page
	}
}

// runOf returns the index, in runStarts and runSymbols, of the run of
// characters with the same symbol that contains r. r must not be ASCII.
func (s *alphabet) runOf(r rune) int {
	i, found := slices.BinarySearch(s.runStarts, r)
	if !found {
		i--
	}
	return i
}

// symbolOf returns the symbol of a non-ASCII character.
func (s *alphabet) symbolOf(r rune) uint32 {
	if r < 1<<16 {
		return s.pages[r>>8][r&0xFF]
	}
	return s.runSymbols[s.runOf(r)]
}

// symbolAfter returns the symbol that begins at text[i], and its length in
// bytes.
func (s *alphabet) symbolAfter(text []byte, i int) (symbol uint32, size int) {
	if id := s.byteSymbols[text[i]]; id != 0 {
		return id, 1
	}
	if text[i] == '\r' {
		if i+1 < len(text) && text[i+1] == '\n' {
			return s.lf, 2
		}
		return s.cr, 1
	}
	r, size := utf8.DecodeRune(text[i:])
	if r == utf8.RuneError && size == 1 {
		return s.invalid, 1
	}
	return s.symbolOf(r), size
}

// symbolBefore returns the symbol that ends before text[i], and its length in
// bytes. i is at least 1.
func (s *alphabet) symbolBefore(text []byte, i int) (symbol uint32, size int) {
	last := text[i-1]
	if last == '\n' && s.crlf && i > 1 && text[i-2] == '\r' {
		return s.lf, 2
	}
	if id := s.byteSymbols[last]; id != 0 {
		return id, 1
	}
	if last == '\r' {
		return s.cr, 1
	}
	r, size := utf8.DecodeLastRune(text[:i])
	if r == utf8.RuneError && size == 1 {
		return s.invalid, 1
	}
	return s.symbolOf(r), size
}
