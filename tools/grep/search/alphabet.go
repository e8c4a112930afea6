package search

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"
)

// symbols maps the text to symbols. Symbol 0 is reserved: it marks bytes that
// need further bytes to determine the symbol.
type symbols struct {
	ofByte  [256]uint32
	starts  []rune // beyond ASCII: the starts of runs with one symbol
	ids     []uint32
	pages   [256]*[256]uint32 // of the first 65 536 characters
	attrOf  []attr
	count   int
	invalid uint32
	edge    uint32

	crlf bool   // \r\n is one symbol, the same as \n
	cr   uint32 // with crlf: the symbol of a \r without a following \n
	lf   uint32 // the symbol of \n
}

// newSymbols divides all characters into symbols by their membership in the
// sets, and returns the membership of each symbol.
func newSymbols(ctx context.Context, sets []charset, uses attr, bytes, crlf bool) (symbols, [][]bool, error) {
	type event struct {
		at  rune
		set int
	}
	all := append(slices.Clone(sets), single('\n'))
	word := asciiWord()
	if uses&attrWord != 0 {
		word = wordSet()
		all = append(all, word)
	}
	if uses&attrASCIIWord != 0 {
		all = append(all, asciiWord())
	}
	events := []event{{0, -1}, {0x80, -1}, {rawBase, -1}}
	for id, set := range all {
		for _, r := range set {
			events = append(events, event{r.lo, id}, event{r.hi + 1, id})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	s := symbols{count: 1, attrOf: []attr{0}, crlf: crlf}
	member := make([][]bool, len(sets))
	for i := range member {
		member[i] = []bool{false}
	}
	inside, known := make([]bool, len(all)), map[string]uint32{}
	newSymbol := func(r rune) uint32 {
		for i := range member {
			member[i] = append(member[i], inside[i])
		}
		s.attrOf = append(s.attrOf, attrsOf(r, word))
		s.count++
		return uint32(s.count - 1)
	}
	for i := 0; i < len(events); {
		if s.count%64 == 0 && ctx.Err() != nil {
			return symbols{}, nil, ctx.Err()
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
			s.ofByte[b] = id
		}
		if at >= 0x80 {
			s.starts, s.ids = append(s.starts, at), append(s.ids, id)
		}
	}
	s.finish(sets, member)
	s.fillPages()
	s.lf = s.ofByte['\n']
	if crlf { // the symbol of \r depends on the next byte: see after
		s.cr, s.ofByte['\r'] = s.ofByte['\r'], 0
	}
	return s, member, nil
}

// finish adds the two symbols that are not characters: the invalid byte, which
// only the search's own step matches, and the edge.
func (s *symbols) finish(sets []charset, member [][]bool) {
	s.invalid, s.edge = uint32(s.count), uint32(s.count+1)
	for i, set := range sets {
		whole := len(set) == 1 && set[0].lo == 0 && set[0].hi == maxRaw
		member[i] = append(member[i], whole, false)
	}
	s.attrOf = append(s.attrOf, attrInvalid, attrEdge)
	s.count += 2
}

// fillPages precomputes the symbols of common characters. Pages with a single
// symbol share memory.
func (s *symbols) fillPages() {
	uniform := map[uint32]*[256]uint32{}
	for i := range s.pages {
		lo := max(rune(i)<<8, 0x80)
		first, last := s.run(lo), s.run(rune(i)<<8|0xFF)
		page := uniform[s.ids[first]]
		if first != last || page == nil {
			page = new([256]uint32)
			for run := first; run <= last; run++ {
				end := rune(i)<<8 | 0xFF
				if run < last {
					end = s.starts[run+1] - 1
				}
				for r := max(lo, s.starts[run]); r <= end; r++ {
					page[r&0xFF] = s.ids[run]
				}
			}
			if first == last && i > 0 {
				uniform[s.ids[first]] = page
			}
		}
		s.pages[i] = page
	}
}

// run returns the index of the run of a non-ASCII character.
func (s *symbols) run(r rune) int {
	i, found := slices.BinarySearch(s.starts, r)
	if !found {
		i--
	}
	return i
}

// of returns the symbol of a non-ASCII character.
func (s *symbols) of(r rune) uint32 {
	if r < 1<<16 {
		return s.pages[r>>8][r&0xFF]
	}
	return s.ids[s.run(r)]
}

// after returns the symbol that begins at text[i], and its length in bytes.
func (s *symbols) after(text []byte, i int) (uint32, int) {
	if id := s.ofByte[text[i]]; id != 0 {
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
	return s.of(r), size
}

// before returns the symbol that ends at text[:i], and its length in bytes.
func (s *symbols) before(text []byte, i int) (uint32, int) {
	last := text[i-1]
	if last == '\n' && s.crlf && i > 1 && text[i-2] == '\r' {
		return s.lf, 2
	}
	if id := s.ofByte[last]; id != 0 {
		return id, 1
	}
	if last == '\r' {
		return s.cr, 1
	}
	r, size := utf8.DecodeLastRune(text[:i])
	if r == utf8.RuneError && size == 1 {
		return s.invalid, 1
	}
	return s.of(r), size
}
