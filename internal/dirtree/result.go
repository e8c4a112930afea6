package dirtree

import "github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"

// label returns the entry's name as shown.
func (e *entry) label() string { return pathname.Escape(e.name) }

// eachRow calls f with the page's rows in the order of the text.
func (r *Result) eachRow(f func(*shownRow)) {
	if r.single != nil {
		f(r.single)
	}
	var visit func(d *dir)
	visit = func(d *dir) {
		for _, kid := range d.inOrder() {
			visit(kid)
		}
		for _, row := range d.rows {
			f(row)
			if row.sub != nil {
				visit(row.sub)
			}
		}
	}
	if r.root != nil {
		visit(r.root)
	}
}

// setStatus sets git's status letters on rows.
func (r *Result) setStatus(status statuses, rows []placed) {
	r.GitAnswered = status != nil
	for _, p := range rows {
		if letter := status.letter(p.row.rel); letter != 0 {
			p.row.Git = string(letter)
		}
	}
}

// collect fills in Rows, with the values that are known only at the end.
func (r *Result) collect() {
	r.eachRow(func(row *shownRow) {
		if row.sub != nil && row.sub.err != nil {
			row.Error = errorWithoutPath(row.sub.err)
		}
		r.Rows = append(r.Rows, row.Row)
	})
}
