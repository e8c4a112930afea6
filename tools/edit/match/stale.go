package match

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// Version describes the file's current version and the one the model knows.
type Version struct {
	Now   textfile.Etag
	Given string      // the etag given by the model, or ""
	Seen  *state.Seen // the record of the last view of the file, or nil
}

// Changed reports whether the file differs from the version that the model
// knows; false if it was never viewed.
func (v Version) Changed() bool {
	switch {
	case v.Given != "":
		return !v.Now.Matches(v.Given)
	case v.Seen != nil:
		return v.Seen.Index.Etag != v.Now
	}
	return false
}

// known reports whether the lines of that version are on record.
func (v Version) known() bool {
	return v.Seen != nil && (v.Given == "" || v.Seen.Index.Etag.Matches(v.Given))
}

// Fresh decides by content, not by time, whether an edit still changes text
// that the model saw. Changes elsewhere do not matter as long as the edited
// lines are among the viewed ones. If an etag was given, other lines are STALE,
// and the error shows their current text. Without an etag they are STALE only
// if they replaced viewed lines: for text that was never shown, the match
// itself is proof enough.
func Fresh(ctx context.Context, f *splice.File, places []Place, v Version, o Options) error {
	if !v.Changed() {
		return nil
	}
	if !v.known() {
		if len(places) == 0 {
			return nil
		}
		first, lines := touched(f, places[0])
		return toolerr.New(toolerr.Stale, "%s no longer has etag=%s, and the lines of that version are unknown; nothing was changed. From line %d on, the file now has\n%s\nIf you expect that, send the edit again with etag=%s.",
			o.name(), v.Given, first, show(lines), v.Now).With("etag", v.Now.String())
	}
	seen := newSeenLines(v.Seen)
	number := f.Numbers()
	looks := cancelcheck.New(ctx)
	start, end, single := 0, 0, false
	for _, p := range places {
		if single && start <= p.Start && p.End < end {
			continue // within the line that was just checked
		}
		start, end = wholeLines(f, p)
		if looks.Stopped(end - start + perPlace) {
			return looks.Err()
		}
		sums := lineSums(f, start, end)
		single = len(sums) == 1
		if seen.has(sums) {
			continue
		}
		if v.Given == "" && !seen.surrounds(f, start, end) {
			continue
		}
		_, lines := touched(f, p)
		first := number(start)
		return toolerr.New(toolerr.Stale, "%s of %s changed since you viewed them (etag=%s); nothing was changed. The file now has\n%s\nIf the edit is still right, send it again with etag=%s.",
			textfmt.Lines(first, first+len(sums)-1), o.name(), v.Seen.Index.Etag, show(lines), v.Now).With("etag", v.Now.String()).With("line", first)
	}
	return nil
}

// wholeLines returns the range of the lines that a place touches.
func wholeLines(f *splice.File, p Place) (start, end int) {
	return f.LineStart(p.Start), f.LineEnd(max(p.Start, p.End-1))
}

// touched returns the first line number and the text of those lines, as far as
// shown.
func touched(f *splice.File, p Place) (first int, lines [][]byte) {
	start, end := wholeLines(f, p)
	for at := start; at < end && len(lines) <= maxBlock; {
		next := f.LineEnd(at)
		lines = append(lines, f.Content(f.Text[at:next]))
		at = next
	}
	return f.Numbers()(start), lines
}

func show(lines [][]byte) string {
	var text strings.Builder
	for i, line := range lines {
		if i == maxBlock {
			text.WriteString("…")
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(clip(line))
	}
	return text.String()
}

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

// nearby bounds the distance from a place at which viewed lines are searched.
const nearby = 20

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
