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
	seen        *state.Seen
	positions   map[uint32][]seenPosition
	comparisons int
}

// spotSeen identifies a viewed line by its range and its index in it.
type seenPosition struct{ rangeIndex, lineIndex int }

// maxCompared bounds the comparisons of many equal lines; beyond it each line
// is only looked up.
const maxComparisons = 10_000_000

func newSeenLines(seen *state.Seen) *seenLines {
	s := &seenLines{seen: seen, positions: map[uint32][]seenPosition{}}
	for i, r := range seen.Ranges {
		for j, sum := range r.Sums {
			s.positions[sum] = append(s.positions[sum], seenPosition{i, j})
		}
	}
	return s
}

// has reports whether lines were viewed consecutively.
func (s *seenLines) viewedTogether(sums []uint32) bool {
	if len(sums) == 0 {
		return false
	}
	for _, at := range s.positions[sums[0]] {
		rest := s.seen.Ranges[at.rangeIndex].Sums[at.lineIndex:]
		if s.comparisons += len(sums); s.comparisons > maxComparisons {
			return !slices.ContainsFunc(sums, func(sum uint32) bool { return len(s.positions[sum]) == 0 })
		}
		if len(rest) >= len(sums) && slices.Equal(rest[:len(sums)], sums) {
			return true
		}
	}
	return false
}

// surrounds reports whether lines that were not viewed are between viewed lines
// of one range: they replaced others.
func (s *seenLines) surroundedByViewed(f *splice.File, start, end int) bool {
	before, after := s.anchorsAbove(f, start), s.anchorsBelow(f, end)
	for _, b := range before {
		for _, a := range after {
			if s.comparisons++; s.comparisons > maxComparisons {
				return true // if in doubt, nothing is overwritten
			}
			if a.rangeIndex == b.rangeIndex && a.lineIndex > b.lineIndex {
				return true
			}
		}
	}
	return false
}

// above returns where the nearest distinctive line before a position was
// viewed; the beginning of the file counts as such a line.
func (s *seenLines) anchorsAbove(f *splice.File, at int) []seenPosition {
	for range maxAnchorDistance {
		if at <= f.BodyStart {
			return s.fileEdge(func(r state.Range) (int, bool) { return -1, r.First == 1 })
		}
		start := f.LineStart(at - 1)
		if found := s.distinctiveLine(f, start, at); found != nil {
			return found
		}
		at = start
	}
	return nil
}

// below is above for the nearest line after a position.
func (s *seenLines) anchorsBelow(f *splice.File, at int) []seenPosition {
	for range maxAnchorDistance {
		if at >= len(f.Text) {
			return s.fileEdge(func(r state.Range) (int, bool) { return len(r.Sums), r.Last == s.seen.Index.Lines })
		}
		end := f.LineEnd(at)
		if found := s.distinctiveLine(f, at, end); found != nil {
			return found
		}
		at = end
	}
	return nil
}

// edge returns the position before the first or after the last line of the
// version, if that line was viewed.
func (s *seenLines) fileEdge(edgeIndex func(state.Range) (int, bool)) []seenPosition {
	for i, r := range s.seen.Ranges {
		if index, ok := edgeIndex(r); ok {
			return []seenPosition{{i, index}}
		}
	}
	return nil
}

// distinctive returns where a line was viewed; nil for a common line such as
// "}".
func (s *seenLines) distinctiveLine(f *splice.File, start, end int) []seenPosition {
	if len(bytes.Trim(f.Text[start:end], " \t\r\n{}[]()<>/,;:*#-=")) < 3 {
		return nil
	}
	sums := lineChecksums(f, start, end)
	if len(sums) != 1 {
		return nil
	}
	return s.positions[sums[0]]
}

// nearby bounds the distance from a place at which viewed lines are searched.
const maxAnchorDistance = 20

// lineSums returns the checksums of the bytes of each line between a line's
// start and another's end.
func lineChecksums(f *splice.File, start, end int) []uint32 {
	var sums []uint32
	from, ok := f.RawOffset(start)
	for at := start; at < end && ok; {
		at = f.LineEnd(at)
		var to int
		to, ok = f.RawOffset(at)
		sums = append(sums, textfile.LineSum(f.Raw[from:to]))
		from = to
	}
	return sums
}
