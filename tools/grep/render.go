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
	// headerRoom is the part of the budget for the first line and notes, in
	// bytes.
	headerRoom = 1500
	// lateTime bounds the rendering of results after the deadline.
	lateTime = 500 * time.Millisecond
	// lineWidth bounds the characters shown of a line.
	lineWidth = 400
)

// The steps that shorten a result that is too long, as meta names them.
const (
	lessContext = "context"
	lessWidth   = "width"
	noText      = "text"
	noLines     = "lines"
)

// pick selects the matches of one file to show: those numbered from to to, to
// excluded.
type pick struct {
	match
	from, to int
}

// picks returns the files and matches of the requested page.
func (q *query) picks(f *found) []pick {
	var picks []pick
	skip, want := q.args.Offset, q.args.HeadLimit
	for _, m := range f.page {
		n := m.entries(q)
		if skip >= n {
			skip -= n
			continue
		}
		to := min(n, skip+want)
		picks = append(picks, pick{m, skip, to})
		if want -= to - skip; want == 0 {
			break
		}
		skip = 0
	}
	return picks
}

// answer renders the results of a search.
func (q *query) answer(ctx context.Context, f *found) (*mcpkit.Result, error) {
	late := ctx
	if ctx.Err() != nil { // the deadline has passed: still render the results
		var stop context.CancelFunc
		late, stop = context.WithTimeout(context.WithoutCancel(ctx), lateTime)
		defer stop()
	}
	hints := q.findHints(ctx, f)
	budget := max(mcpkit.Budget(ctx)-headerRoom, headerRoom/3)
	var p *page
	var m meta
	if q.args.OutputMode == modeContent {
		p, m = q.content(late, f, budget)
	} else {
		p, m = q.list(q.picks(f), budget)
	}
	if errors.Is(context.Cause(ctx), mcpkit.ErrCancelled) || errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	m.Files, m.Searched, m.Partial, m.Ignored = f.files, f.outcomes[searched], f.partial, hints.ignored.files
	if q.args.OutputMode != modeFiles {
		m.Matches = f.matches
	}
	for _, n := range f.outcomes[searched+1:] {
		m.Skipped += n
	}
	m.Skipped += f.report.Unreadable
	if end := q.args.Offset + m.Shown; m.Shown > 0 && end < f.entries {
		m.Truncated, m.NextOffset = true, end
	}
	m.Truncated = m.Truncated || m.Reduced != ""
	text := q.header(f, hints, m) + "\n" + p.text.String() + q.advice(f, hints, m)
	if !m.Truncated {
		m.Shown = 0 // all are shown
	}
	return &mcpkit.Result{Text: text, Meta: m, Rows: p.rows}, nil
}

// content renders the lines of the page, with as much context as fits.
func (q *query) content(ctx context.Context, f *found, budget int) (*page, meta) {
	picks := q.picks(f)
	w := &searcher{query: q, ctx: ctx, matcher: q.bounded(ctx), buf: q.buffers.take()}
	defer w.giveBack()
	for _, lines := range q.ownContext(f) {
		step := detail{before: lines, after: lines, width: lineWidth}
		if p, m := w.page(f, picks, step, min(budget, ownRoom)); !p.full {
			return p, m
		}
	}
	steps := q.steps()
	if f.isFile && q.args.unlimited { // the next page has what does not fit
		step := steps[0]
		step.partial = true
		if p, m := w.page(f, picks, step, budget); !p.full {
			return p, m
		}
	}
	for _, step := range steps {
		p, m := w.page(f, picks, step, budget)
		if !p.full {
			m.Reduced = q.reduced(steps[0], step)
			return p, m
		}
	}
	p, m := q.list(picks, budget)
	m.Reduced = noLines
	return p, m
}

// page renders the picked matches with one detail, until the page is full.
func (w *searcher) page(f *found, picks []pick, step detail, budget int) (*page, meta) {
	p := newPage(budget)
	p.detail, p.numbered = step, w.args.Number
	var m meta
	for _, pick := range picks {
		m.Shown += pick.to - pick.from
		w.show(p, f, pick)
		if p.cut {
			m.Shown = p.whole.matches
		}
		if p.full || p.cut {
			break
		}
	}
	return p, m
}

// ownRoom bounds an answer with context that the caller did not request, in
// bytes.
const ownRoom = 1200

// ownContext returns the numbers of context lines to try for few matches, if
// the caller did not set the context.
func (q *query) ownContext(f *found) []int {
	switch {
	case q.asked || q.args.Only:
		return nil
	case f.matches == 1:
		return []int{20, 12, 7, 4, 2}
	case f.matches <= 3:
		return []int{8, 4, 2}
	}
	return nil
}

// steps returns the details to try in order.
func (q *query) steps() []detail {
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
	d.numbers = true
	return append(steps, d)
}

// reduced names the omission of a step, or returns "".
func (q *query) reduced(full, step detail) string {
	switch {
	case step.numbers:
		return noText
	case step.width < full.width:
		return lessWidth
	case step.before < full.before || step.after < full.after:
		return lessContext
	}
	return ""
}

// show renders the matches of one file.
func (w *searcher) show(p *page, f *found, pick pick) {
	p.begin(w.shownPath(f.abs, pick.path))
	x := &excerpt{query: w.query, matcher: w.matcher, out: p, from: pick.from, to: pick.to, next: 1, starts: pick.starts}
	outcome := w.reread(f, pick.match, x.window)
	p.end()
	p.cutBack()
	if w.masked && !p.full {
		p.note("values are masked")
	}
	if pick.encoding != "" && !p.full {
		p.note("decoded from %s (a guess)", pick.encoding)
	}
	switch {
	case p.full, p.cut:
	case outcome != searched:
		p.note("can no longer be read")
	case w.ctx.Err() != nil:
		p.note("not all shown: time limit reached")
	case x.passed < pick.to:
		p.note("changed during the search: %d of %s remain", x.passed, textfmt.Count(pick.count, "match"))
	case pick.to < pick.count && pick.to == w.perFile:
		p.note("%d more in this file (max_per_file=%d)", pick.count-pick.to, w.perFile)
	}
}

// reread passes a file's text to yield once more: the kept content, or else the
// file read again.
func (w *searcher) reread(f *found, m match, yield func([]byte) bool) outcome {
	w.masked = false
	if m.kept != nil {
		yield(decoded(m.kept, m.encoding, false))
		return searched
	}
	name := w.dir // as requested: the name may require masking
	if !f.isFile {
		name = filepath.Join(w.abs, filepath.FromSlash(m.path))
	}
	file, err := w.fs.Open(name)
	if err != nil {
		return failure(err)
	}
	defer file.Close()
	w.masked = file.Masked
	return w.windows(m.path, file.File, file.Stat, file.Masked, true, m.encoding, yield)
}

// list renders files, with the number of matches if it is known.
func (q *query) list(picks []pick, budget int) (*page, meta) {
	p := newPage(budget)
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

// shownPath formats a path for results, so that it can be passed to any tool.
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
