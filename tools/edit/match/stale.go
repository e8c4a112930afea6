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

// Version describes the file's current version and the one the model knows.
type Version struct {
	CurrentEtag textfile.Etag
	GivenEtag   string      // the etag given by the model, or ""
	Seen        *state.Seen // the record of the last view of the file, or nil
}

// Changed reports whether the file differs from the version that the model
// knows; false if it was never viewed.
func (v Version) Changed() bool {
	switch {
	case v.GivenEtag != "":
		return !v.CurrentEtag.Matches(v.GivenEtag)
	case v.Seen != nil:
		return v.Seen.Index.Etag != v.CurrentEtag
	}
	return false
}

// known reports whether the lines of that version are on record.
func (v Version) linesRecorded() bool {
	return v.Seen != nil && (v.GivenEtag == "" || v.Seen.Index.Etag.Matches(v.GivenEtag))
}

// Fresh decides by content, not by time, whether an edit still changes text
// that the model saw. Changes elsewhere do not matter as long as the edited
// lines are among the viewed ones. If an etag was given, other lines are STALE,
// and the error shows their current text. Without an etag they are STALE only
// if they replaced viewed lines: for text that was never shown, the match
// itself is proof enough.
func CheckStale(ctx context.Context, f *splice.File, places []Place, v Version, o Options) error {
	if !v.Changed() {
		return nil
	}
	if !v.linesRecorded() {
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
		if seen.viewedTogether(sums) {
			continue
		}
		if v.GivenEtag == "" && !seen.surroundedByViewed(f, start, end) {
			continue
		}
		_, lines := touchedLines(f, p)
		first := number(start)
		return toolerr.New(toolerr.Stale, "%s of %s changed since you viewed them (etag=%s); nothing was changed. The file now has\n%s\nIf the edit is still right, send it again with etag=%s.",
			textfmt.Lines(first, first+len(sums)-1), o.displayName(), v.Seen.Index.Etag, linesExcerpt(lines), v.CurrentEtag).With("etag", v.CurrentEtag.String()).With("line", first)
	}
	return nil
}

// wholeLines returns the range of the lines that a place touches.
func wholeLines(f *splice.File, p Place) (start, end int) {
	return f.LineStart(p.Start), f.LineEnd(max(p.Start, p.End-1))
}

// touched returns the first line number and the text of those lines, as far as
// shown.
func touchedLines(f *splice.File, p Place) (first int, lines [][]byte) {
	start, end := wholeLines(f, p)
	for at := start; at < end && len(lines) <= maxBlockLines; {
		next := f.LineEnd(at)
		lines = append(lines, f.TrimEnding(f.Text[at:next]))
		at = next
	}
	return f.LineNumberer()(start), lines
}
