package dirtree

// usualLineLength is a length, in bytes, that most lines of a listing do not
// exceed.
const usualLineLength = 60

// pageRow is a row of the page with its position in the tree.
type pageRow struct {
	dir   *dir
	index int // of the entry
	row   *shownRow
}

// fitPage puts the rows into the tree, as many as fit the budget. It renders
// the page again after each attempt, because the texts next to directories
// depend on which rows are shown. At least one row stays.
func (l *lister) fitPage() {
	r := l.result
	for n := len(l.pageRows); ; {
		for _, p := range l.pageRows {
			p.dir.removeFromPage()
		}
		for _, p := range l.pageRows[:n] {
			p.dir.addRow(p.index, p.row)
		}
		r.NextOffset = 0
		if end := r.Offset + n; n > 0 && (end < r.Total || !r.TotalExact) {
			r.NextOffset = end
		}
		r.shownRows = n
		over := len(Render(r)) - r.budget
		if over <= 0 || n <= 1 {
			return
		}
		n = max(1, n-1-over/usualLineLength)
	}
}

// removeFromPage removes all rows of the directory and of its parents from the
// page.
func (d *dir) removeFromPage() {
	for ; d != nil; d = d.parent {
		d.rows, d.earlierDirs, d.onPage = nil, nil, false
	}
}

// addRow adds the row of d.entries[index] to the page, after the rows added
// before.
func (d *dir) addRow(index int, row *shownRow) {
	if len(d.rows) == 0 {
		d.rowsFrom = index
	}
	d.rows = append(d.rows, row)
	if row.sub != nil {
		row.sub.onPage = true
	}
	for up := d; !up.onPage && up.parent != nil; up = up.parent {
		up.onPage = true
		up.parent.earlierDirs = append(up.parent.earlierDirs, up)
	}
}
