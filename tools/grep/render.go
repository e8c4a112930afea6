package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

const (
	// headerBytes is the part of the budget for the first line and notes,
	// in bytes.
	headerBytes = 1500
	// lateRenderTime bounds the rendering of results after the deadline.
	lateRenderTime = 500 * time.Millisecond
)

// The steps that shorten a result that is too long, as meta.Reduced names them.
const (
	lessContext = "context" // fewer lines of context
	lessWidth   = "width"   // shorter lines
	noText      = "text"    // only line numbers
	noLines     = "lines"   // only the number of matches of each file
)

// fileSelection selects the matches of one file to show: those numbered from,
// up to but not including to.
type fileSelection struct {
	matchingFile
	from, to int // numbers of matches, from 0
}

// selectPage returns the files and matches of the requested page.
func (q *query) selectPage(f *searchResult) []fileSelection {
	var picks []fileSelection
	skip, want := q.args.Offset, q.args.HeadLimit
	for _, m := range f.page {
		n := m.showableCount(q)
		if skip >= n {
			skip -= n
			continue
		}
		to := min(n, skip+want)
		picks = append(picks, fileSelection{m, skip, to})
		if want -= to - skip; want == 0 {
			break
		}
		skip = 0
	}
	return picks
}

// render returns the result of a search. It runs the near searches. If the call
// was cancelled, it returns the context's error.
func (q *query) render(ctx context.Context, f *searchResult) (*mcpkit.Result, error) {
	late := ctx
	if ctx.Err() != nil { // the deadline has passed: still render the results
		var stop context.CancelFunc
		late, stop = context.WithTimeout(context.WithoutCancel(ctx), lateRenderTime)
		defer stop()
	}
	near := q.searchNear(ctx, f)
	budget := max(mcpkit.Budget(ctx)-headerBytes, headerBytes/3)
	var p *resultPage
	var m meta
	if q.args.OutputMode == modeContent {
		p, m = q.renderContent(late, f, budget)
	} else {
		p, m = q.renderList(q.selectPage(f), budget)
	}
	if errors.Is(context.Cause(ctx), mcpkit.ErrCancelled) || errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	m.Files, m.Searched, m.Partial, m.Ignored = f.matchingFiles, f.outcomes[searched], f.partial, near.ignored.files
	if q.args.OutputMode != modeFiles {
		m.Matches = f.matches
	}
	for _, n := range f.outcomes[searched+1:] {
		m.Skipped += n
	}
	m.Skipped += f.report.Unreadable
	if end := q.args.Offset + m.Shown; m.Shown > 0 && end < f.showable {
		m.Truncated, m.NextOffset = true, end
	}
	m.Truncated = m.Truncated || m.Reduced != ""
	text := q.header(f, near, m) + "\n" + p.text.String() + q.trailingNotes(f, near, m)
	if !m.Truncated {
		m.Shown = 0 // all are shown
	}
	return &mcpkit.Result{Text: text, Meta: m, Rows: p.rows}, nil
}

// renderContent renders the lines of the page, with as much context as fits
// into budget bytes.
func (q *query) renderContent(ctx context.Context, f *searchResult, budget int) (*resultPage, meta) {
	picks := q.selectPage(f)
	w := &searcher{query: q, ctx: ctx, matcher: q.boundedMatcher(ctx), buf: q.buffers.get()}
	defer w.releaseMemory()
	for _, lines := range q.defaultContexts(f) {
		step := detail{before: lines, after: lines, width: lineWidth}
		if p, m := w.renderPage(f, picks, step, min(budget, defaultContextBytes)); !p.full {
			return p, m
		}
	}
	steps := q.detailSteps()
	if f.isFile && q.args.unlimited { // the next page has what does not fit
		step := steps[0]
		step.partial = true
		if p, m := w.renderPage(f, picks, step, budget); !p.full {
			return p, m
		}
	}
	for _, step := range steps {
		p, m := w.renderPage(f, picks, step, budget)
		if !p.full {
			m.Reduced = q.reductionOf(steps[0], step)
			return p, m
		}
	}
	p, m := q.renderList(picks, budget)
	m.Reduced = noLines
	return p, m
}

// renderPage renders the selected matches with one detail, until the page is
// full.
func (w *searcher) renderPage(f *searchResult, picks []fileSelection, step detail, budget int) (*resultPage, meta) {
	p := newResultPage(budget)
	p.detail, p.numbered = step, w.args.Number
	var m meta
	for _, pick := range picks {
		m.Shown += pick.to - pick.from
		w.showFile(p, f, pick)
		if p.cut {
			m.Shown = p.complete.matches
		}
		if p.full || p.cut {
			break
		}
	}
	return p, m
}

// defaultContexts returns the numbers of context lines to try in order, if
// there are few matches and the caller did not set the context; otherwise nil.
func (q *query) defaultContexts(f *searchResult) []int {
	switch {
	case q.contextGiven || q.args.Only:
		return nil
	case f.matches == 1:
		return []int{20, 12, 7, 4, 2}
	case f.matches <= 3:
		return []int{8, 4, 2}
	}
	return nil
}

// detailSteps returns the details to try in order, the most detailed first.
func (q *query) detailSteps() []detail {
	full := detail{before: q.before, after: q.after, width: lineWidth}
	steps := []detail{full}
	d := full
	for _, lines := range []int{8, 3, 1, 0} {
		if d.before > lines || d.after > lines {
			d.before, d.after = min(d.before, lines), min(d.after, lines)
			steps = append(steps, d)
		}
	}
	for _, width := range []int{200, 100} {
		d.width = width
		steps = append(steps, d)
	}
	d.numbersOnly = true
	return append(steps, d)
}

// reductionOf names what a step leaves out compared with full: lessContext,
// lessWidth or noText. It returns "" for the same detail.
func (q *query) reductionOf(full, step detail) string {
	switch {
	case step.numbersOnly:
		return noText
	case step.width < full.width:
		return lessWidth
	case step.before < full.before || step.after < full.after:
		return lessContext
	}
	return ""
}

// showFile renders the matches of one file, and notes on those that are not
// shown.
func (w *searcher) showFile(p *resultPage, f *searchResult, pick fileSelection) {
	p.beginFile(w.shownPath(f.abs, pick.path))
	x := &matchExcerpt{query: w.query, matcher: w.matcher, out: p, from: pick.from, to: pick.to, windowLine: 1, starts: pick.starts}
	outcome := w.rereadFile(f, pick.matchingFile, x.writeWindow)
	p.flushLineNumbers()
	p.cutToComplete()
	if w.rereadMasked && !p.full {
		p.addNote("values are masked")
	}
	if pick.encoding != "" && !p.full {
		p.addNote("decoded from %s (a guess)", pick.encoding)
	}
	switch {
	case p.full, p.cut:
	case outcome != searched:
		p.addNote("can no longer be read")
	case w.ctx.Err() != nil:
		p.addNote("not all shown: time limit reached")
	case x.passed < pick.to:
		p.addNote("changed during the search: %d of %s remain", x.passed, textfmt.Count(pick.count, "match"))
	case pick.to < pick.count && pick.to == w.perFile:
		p.addNote("%d more in this file (max_per_file=%d)", pick.count-pick.to, w.perFile)
	}
}

// rereadFile passes a file's text to yield once more: the kept content, or else
// the file read again. It returns searched, or why the file cannot be read.
func (w *searcher) rereadFile(f *searchResult, m matchingFile, yield func([]byte) bool) outcome {
	w.rereadMasked = false
	if m.keptText != nil {
		yield(decodeSearchable(m.keptText, m.encoding, false))
		return searched
	}
	name := w.dir // as requested: the name may require masking
	if !f.isFile {
		name = filepath.Join(w.abs, filepath.FromSlash(m.path))
	}
	file, err := w.fs.Open(name)
	if err != nil {
		return outcomeOf(err)
	}
	defer file.Close()
	w.rereadMasked = file.Masked
	return w.eachWindow(m.path, file.File, file.Stat, file.Masked, true, m.encoding, yield)
}

// renderList renders a line for each file, with the number of matches if it is
// known.
func (q *query) renderList(picks []fileSelection, budget int) (*resultPage, meta) {
	p := newResultPage(budget)
	var m meta
	for _, pick := range picks {
		r := row{Path: q.shownPath(q.abs, pick.path)}
		text := r.Path
		if q.args.OutputMode != modeFiles {
			r.Count = pick.count
			text += fmt.Sprintf(": %d", pick.count)
		}
		if pick.mtime != 0 {
			r.Modified = time.Unix(0, pick.mtime).Format(time.RFC3339Nano)
		}
		if p.put(text + "\n"); p.full {
			break
		}
		p.rows = append(p.rows, r)
		m.Shown += pick.to - pick.from
	}
	return p, m
}

// shownPath returns a path for results, which any tool accepts. rel is relative
// to abs, with slashes; "" means abs itself.
func (q *query) shownPath(abs, rel string) string {
	if rel == "" {
		return q.fs.Display(abs)
	}
	dir := q.fs.Display(abs)
	if dir == "." {
		return pathname.Escape(rel)
	}
	return strings.TrimSuffix(dir, "/") + "/" + pathname.Escape(rel)
}
