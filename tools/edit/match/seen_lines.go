package match

import (
	"bytes"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// seenLines finds lines among the viewed lines of a version.
type seenLines struct {
	seen        *state.Seen
	positions   map[uint32][]seenPosition // by checksum
	comparisons int                       // made so far
}

// seenPosition identifies a viewed line by the index of its range in
// seen.Ranges and its index in that range.
type seenPosition struct{ rangeIndex, lineIndex int }

// maxComparisons bounds the work for a file with many equal lines. Beyond it,
// wereViewedTogether looks up each line on its own.
const maxComparisons = 10_000_000

// newSeenLines indexes the viewed lines by checksum.
func newSeenLines(seen *state.Seen) *seenLines {
	s := &seenLines{seen: seen, positions: map[uint32][]seenPosition{}}
	for i, r := range seen.Ranges {
		for j, sum := range r.Sums {
			s.positions[sum] = append(s.positions[sum], seenPosition{i, j})
		}
	}
	return s
}

// wereViewedTogether reports whether lines with these checksums were viewed as
// consecutive lines. Beyond maxComparisons, it only checks that each was
// viewed.
func (s *seenLines) wereViewedTogether(sums []uint32) bool {
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

// areSurroundedByViewed reports whether the lines from start to end, which were
// not viewed, have replaced viewed lines: a viewed range has both the nearest
// distinctive line before them and the nearest one after them. If in doubt, it
// returns true.
func (s *seenLines) areSurroundedByViewed(f *splice.File, start, end int) bool {
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

// anchorsAbove returns the positions of the nearest distinctive line before
// offset at that was viewed; nil if no such line is near. The beginning of the
// file counts as such a line.
func (s *seenLines) anchorsAbove(f *splice.File, at int) []seenPosition {
	for range maxAnchorDistance {
		if at <= f.BodyStart {
			return s.versionEdge(func(r state.Range) (int, bool) { return -1, r.First == 1 })
		}
		start := f.LineStart(at - 1)
		if found := s.positionsIfDistinctive(f, start, at); found != nil {
			return found
		}
		at = start
	}
	return nil
}

// anchorsBelow returns what anchorsAbove does, for the lines after offset at and
// the end of the file; nil if it finds none within maxAnchorDistance lines.
func (s *seenLines) anchorsBelow(f *splice.File, at int) []seenPosition {
	for range maxAnchorDistance {
		if at >= len(f.Text) {
			return s.versionEdge(func(r state.Range) (int, bool) { return len(r.Sums), r.Last == s.seen.Index.Lines })
		}
		end := f.LineEnd(at)
		if found := s.positionsIfDistinctive(f, at, end); found != nil {
			return found
		}
		at = end
	}
	return nil
}

// versionEdge returns the position before the first or after the last line of the
// version, if that line was viewed; otherwise nil. edgeIndex returns that
// position in a range, and false if the range does not have the line.
func (s *seenLines) versionEdge(edgeIndex func(state.Range) (int, bool)) []seenPosition {
	for i, r := range s.seen.Ranges {
		if index, ok := edgeIndex(r); ok {
			return []seenPosition{{i, index}}
		}
	}
	return nil
}

// positionsIfDistinctive returns the positions at which the line from start to
// end was viewed. It returns nil if the line was not viewed, or is too common
// to identify a place, such as "}".
func (s *seenLines) positionsIfDistinctive(f *splice.File, start, end int) []seenPosition {
	if len(bytes.Trim(f.Text[start:end], " \t\r\n{}[]()<>/,;:*#-=")) < 3 {
		return nil
	}
	sums := lineChecksums(f, start, end)
	if len(sums) != 1 {
		return nil
	}
	return s.positions[sums[0]]
}

// maxAnchorDistance bounds the lines searched on each side of a place for a
// distinctive line that was viewed.
const maxAnchorDistance = 20

// lineChecksums returns the checksum of each line from start, where a line
// begins, to end, where a line ends. A checksum covers the line's bytes in the
// file, in its encoding, with the ending. The result is shorter if a line
// boundary is inside a character.
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
