package match

import (
	"bytes"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// seenLines holds the viewed lines of a version.
type seenLines struct {
	seen   *state.Seen
	places map[uint32][]spotSeen
	work   int
}

// spotSeen identifies a viewed line by its range and its index in it.
type spotSeen struct{ span, index int }

// maxCompared bounds the comparisons of many equal lines; beyond it each line
// is only looked up.
const maxCompared = 10_000_000

func newSeenLines(seen *state.Seen) *seenLines {
	s := &seenLines{seen: seen, places: map[uint32][]spotSeen{}}
	for i, r := range seen.Ranges {
		for j, sum := range r.Sums {
			s.places[sum] = append(s.places[sum], spotSeen{i, j})
		}
	}
	return s
}

// has reports whether lines were viewed consecutively.
func (s *seenLines) has(sums []uint32) bool {
	if len(sums) == 0 {
		return false
	}
	for _, at := range s.places[sums[0]] {
		rest := s.seen.Ranges[at.span].Sums[at.index:]
		if s.work += len(sums); s.work > maxCompared {
			return !slices.ContainsFunc(sums, func(sum uint32) bool { return len(s.places[sum]) == 0 })
		}
		if len(rest) >= len(sums) && slices.Equal(rest[:len(sums)], sums) {
			return true
		}
	}
	return false
}

// surrounds reports whether lines that were not viewed are between viewed lines
// of one range: they replaced others.
func (s *seenLines) surrounds(f *splice.File, start, end int) bool {
	before, after := s.above(f, start), s.below(f, end)
	for _, b := range before {
		for _, a := range after {
			if s.work++; s.work > maxCompared {
				return true // if in doubt, nothing is overwritten
			}
			if a.span == b.span && a.index > b.index {
				return true
			}
		}
	}
	return false
}

// above returns where the nearest distinctive line before a position was
// viewed; the beginning of the file counts as such a line.
func (s *seenLines) above(f *splice.File, at int) []spotSeen {
	for range nearby {
		if at <= f.Body {
			return s.edge(func(r state.Range) (int, bool) { return -1, r.First == 1 })
		}
		start := f.LineStart(at - 1)
		if found := s.distinctive(f, start, at); found != nil {
			return found
		}
		at = start
	}
	return nil
}

// below is above for the nearest line after a position.
func (s *seenLines) below(f *splice.File, at int) []spotSeen {
	for range nearby {
		if at >= len(f.Text) {
			return s.edge(func(r state.Range) (int, bool) { return len(r.Sums), r.Last == s.seen.Index.Lines })
		}
		end := f.LineEnd(at)
		if found := s.distinctive(f, at, end); found != nil {
			return found
		}
		at = end
	}
	return nil
}

// edge returns the position before the first or after the last line of the
// version, if that line was viewed.
func (s *seenLines) edge(is func(state.Range) (int, bool)) []spotSeen {
	for i, r := range s.seen.Ranges {
		if index, ok := is(r); ok {
			return []spotSeen{{i, index}}
		}
	}
	return nil
}

// distinctive returns where a line was viewed; nil for a common line such as
// "}".
func (s *seenLines) distinctive(f *splice.File, start, end int) []spotSeen {
	if len(bytes.Trim(f.Text[start:end], " \t\r\n{}[]()<>/,;:*#-=")) < 3 {
		return nil
	}
	sums := lineSums(f, start, end)
	if len(sums) != 1 {
		return nil
	}
	return s.places[sums[0]]
}

// nearby bounds the distance from a place at which viewed lines are searched.
const nearby = 20

// lineSums returns the checksums of the bytes of each line between a line's
// start and another's end.
func lineSums(f *splice.File, start, end int) []uint32 {
	var sums []uint32
	from, ok := f.Offset(start)
	for at := start; at < end && ok; {
		at = f.LineEnd(at)
		var to int
		to, ok = f.Offset(at)
		sums = append(sums, textfile.LineSum(f.Raw[from:to]))
		from = to
	}
	return sums
}
