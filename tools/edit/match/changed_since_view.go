package match

import (
	"context"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// Version describes the file's current version and the version that the model
// knows.
type Version struct {
	CurrentEtag textfile.Etag // of the file's current content
	GivenEtag   string        // the etag that the model gave; "": none
	Seen        *state.Seen   // the record of the last view of the file; nil: none
}

// HasChanged reports whether the file differs from the version that the model
// knows. It returns false if the model knows no version.
func (v Version) HasChanged() bool {
	switch {
	case v.GivenEtag != "":
		return !v.CurrentEtag.Matches(v.GivenEtag)
	case v.Seen != nil:
		return v.Seen.Index.Etag != v.CurrentEtag
	}
	return false
}

// hasRecordedLines reports whether Seen has the viewed lines of the version that
// the model knows.
func (v Version) hasRecordedLines() bool {
	return v.Seen != nil && (v.GivenEtag == "" || v.Seen.Index.Etag.Matches(v.GivenEtag))
}

// CheckStale returns STALE, with the current text, if an edit would change text
// that the model does not know. It decides by content, not by time: changes
// elsewhere in the file do not matter.
//
// If the model gave an etag, every line that an edit touches must be among the
// lines it viewed. Without an etag, lines that were never viewed are accepted,
// since the match itself is proof enough, unless they replaced viewed lines. It
// returns nil if the file has not changed, and the cause if ctx ends.
func CheckStale(ctx context.Context, f *splice.File, places []Place, v Version, o Options) error {
	if !v.HasChanged() {
		return nil
	}
	if !v.hasRecordedLines() {
		if len(places) == 0 {
			return nil
		}
		first, lines := touchedLines(f, places[0])
		return toolerr.New(toolerr.Stale, "%s no longer has etag=%s, and the lines of that version are unknown; nothing was changed. From line %d on, the file now has\n%s\nIf you expect that, send the edit again with etag=%s.",
			o.displayName(), v.GivenEtag, first, linesExcerpt(lines), v.CurrentEtag).With("etag", v.CurrentEtag.String())
	}
	seen := newSeenLines(v.Seen)
	number := f.LineNumberer()
	looks := cancelcheck.New(ctx)
	start, end, single := 0, 0, false
	for _, p := range places {
		if single && start <= p.Start && p.End < end {
			continue // within the line that was just checked
		}
		start, end = wholeLines(f, p)
		if looks.Stopped(end - start + placeCost) {
			return looks.Err()
		}
		sums := lineChecksums(f, start, end)
		single = len(sums) == 1
		if seen.wereViewedTogether(sums) {
			continue
		}
		if v.GivenEtag == "" && !seen.areSurroundedByViewed(f, start, end) {
			continue
		}
		_, lines := touchedLines(f, p)
		first := number(start)
		return toolerr.New(toolerr.Stale, "%s of %s changed since you viewed the file (etag=%s); nothing was changed. The file now has\n%s\nIf the edit is still right, send it again with etag=%s.",
			textfmt.Lines(first, first+len(sums)-1), o.displayName(), v.Seen.Index.Etag, linesExcerpt(lines), v.CurrentEtag).With("etag", v.CurrentEtag.String()).With("line", first)
	}
	return nil
}

// wholeLines returns the range of the lines that a place touches, as offsets in
// the file's text.
func wholeLines(f *splice.File, p Place) (start, end int) {
	return f.LineStart(p.Start), f.LineEnd(max(p.Start, p.End-1))
}

// touchedLines returns the lines that a place touches, at most maxBlockLines+1,
// without endings, and the number of the first.
func touchedLines(f *splice.File, p Place) (first int, lines [][]byte) {
	start, end := wholeLines(f, p)
	for at := start; at < end && len(lines) <= maxBlockLines; {
		next := f.LineEnd(at)
		lines = append(lines, f.TrimEnding(f.Text[at:next]))
		at = next
	}
	return f.LineNumberer()(start), lines
}
