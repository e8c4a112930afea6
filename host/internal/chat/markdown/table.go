package markdown

import (
	"strings"
)

// maxCells bounds a table: an empty cell takes at most one rune of the input, but a
// line of the output.
const maxCells = 1 << 14

// endTable writes the table whose rows were held back: with columns next to each other
// if they fit, and long cells on several lines; otherwise with the cells below each
// other. Rows without a delimiter line are text, and so is a table with very many
// cells.
func (w *Writer) endTable() {
	lines := w.table
	w.table, w.size = nil, 0
	if len(lines) == 0 {
		return
	}
	width := w.textWidth()
	sides, ok := parseAlignments(lines)
	if !ok || len(sides)*len(lines) > maxCells {
		for _, line := range lines {
			w.page.beginLine(width, "", "")
			w.inline.beginLine(0)
			for _, r := range line {
				w.inline.addRune(r)
			}
			w.inline.endLine()
			w.page.endLine()
		}
		return
	}
	var rows [][][]cell
	for i, line := range lines {
		if i == 1 {
			continue
		}
		s := style(0)
		if i == 0 {
			s = bold
		}
		cells := make([][]cell, len(sides))
		for j, text := range splitRow(line) {
			if j < len(cells) {
				cells[j] = w.parseCell(text, s)
			}
		}
		rows = append(rows, cells)
	}
	widths, ok := fitWidths(rows, width)
	if !ok {
		w.writeList(rows, width)
		return
	}
	w.writeGrid(rows, widths, sides)
}

// parseCell returns the text of a table cell as styled characters.
func (w *Writer) parseCell(text string, s style) []cell {
	var all []cell
	put := func(c cell) {
		if c.r == '\t' {
			c.r = ' '
		}
		all = append(all, c)
	}
	var g escaper
	in := inline{put: func(c cell) { g.write(c, put) }, plain: w.inline.plain, style: s}
	for _, r := range text { // so that no more is held back than of a line
		in.addRune(r)
	}
	in.endLine()
	return all
}

// An alignment is the alignment of the text of a column.
type alignment int

const (
	left alignment = iota
	right
	middle
)

// parseAlignments returns the alignments of the columns from the second line, the
// delimiter line. It returns false if the lines are no table.
func parseAlignments(lines []string) ([]alignment, bool) {
	if len(lines) < 2 {
		return nil, false
	}
	var sides []alignment
	for _, text := range splitRow(lines[1]) {
		l, r := strings.HasPrefix(text, ":"), strings.HasSuffix(text, ":")
		if strings.Trim(strings.Trim(text, ":"), "-") != "" || !strings.Contains(text, "-") {
			return nil, false
		}
		switch {
		case l && r:
			sides = append(sides, middle)
		case r:
			sides = append(sides, right)
		default:
			sides = append(sides, left)
		}
	}
	return sides, len(sides) > 0
}

// splitRow returns the texts of the cells of a row. A bar that is escaped or within a
// code span does not end a cell.
func splitRow(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var cells []string
	var b strings.Builder
	ticked, escaped := false, false
	for _, r := range line {
		switch {
		case escaped && r != '|':
			b.WriteRune('\\')
			b.WriteRune(r)
		case escaped:
			b.WriteRune(r)
		case r == '\\':
			escaped = true
			continue
		case r == '|' && !ticked:
			cells = append(cells, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			if r == '`' {
				ticked = !ticked
			}
			b.WriteRune(r)
		}
		escaped = false
	}
	if rest := strings.TrimSpace(b.String()); rest != "" {
		cells = append(cells, rest)
	}
	return cells
}

// columnGap is between two columns, and narrow how few columns of the terminal a
// column of the table can do with.
const (
	columnGap = 2
	minColumn = 8
)

// fitWidths returns widths of the columns such that the table has at most width columns
// of the terminal. It returns false if a column would be narrower than minColumn.
func fitWidths(rows [][][]cell, width int) ([]int, bool) {
	widths := make([]int, len(rows[0]))
	total := columnGap * (len(widths) - 1)
	for i := range widths {
		widths[i] = 1
		for _, row := range rows {
			widths[i] = max(widths[i], columns(row[i]))
		}
		total += widths[i]
	}
	for total > width {
		widest, second := 0, minColumn
		for i, n := range widths {
			if n > widths[widest] {
				widest = i
			}
		}
		for i, n := range widths {
			if i != widest && n < widths[widest] {
				second = max(second, n)
			}
		}
		if widths[widest] <= minColumn {
			return nil, false
		}
		// To the next widest one, but not by more than is needed; at least by one
		// where several are the widest.
		cut := max(min(total-width, widths[widest]-second), 1)
		widths[widest] -= cut
		total -= cut
	}
	return widths, true
}

// writeGrid writes a table with its columns next to each other.
func (w *Writer) writeGrid(rows [][][]cell, widths []int, sides []alignment) {
	for i, row := range rows {
		parts := make([][][]cell, len(row))
		height := 1
		for j, cells := range row {
			parts[j] = wrapCells(cells, widths[j])
			height = max(height, len(parts[j]))
		}
		for line := range height {
			w.page.beginLine(w.textWidth(), "", "")
			spaces := 0
			for j := range row {
				var cells []cell
				if line < len(parts[j]) {
					cells = parts[j][line]
				}
				free := widths[j] - columns(cells)
				before := []int{0, free, free / 2}[sides[j]]
				if len(cells) > 0 {
					w.writeSpaces(spaces + before)
					spaces = 0
				} else {
					spaces += before
				}
				for _, c := range cells {
					w.page.emit(c)
				}
				spaces += free - before + columnGap
			}
			w.page.newline()
		}
		if i == 0 {
			w.page.beginLine(w.textWidth(), "", "")
			for j, n := range widths {
				if j > 0 {
					w.writeSpaces(columnGap)
				}
				for range n {
					w.page.emit(cell{'─', dim})
				}
			}
			w.page.newline()
		}
	}
}

// writeSpaces writes n spaces.
func (w *Writer) writeSpaces(n int) {
	for range n {
		w.page.emit(cell{' ', 0})
	}
}

// wrapCells breaks the characters of a cell into lines of at most width columns,
// between words if possible.
func wrapCells(cells []cell, width int) [][]cell {
	var lines [][]cell
	for len(cells) > 0 {
		end, at, space := 0, 0, -1
		for end < len(cells) {
			if at += columns(cells[end : end+1]); at > width && end > 0 {
				break
			}
			if cells[end].r == ' ' {
				space = end
			}
			end++
		}
		next := end
		if end < len(cells) && cells[end].r == ' ' {
			next = end + 1
		} else if end < len(cells) && space > 0 {
			end, next = space, space+1
		}
		lines = append(lines, cells[:end])
		cells = cells[next:]
	}
	return lines
}

// maxHeading bounds the heading before each cell in writeList, in characters.
const maxHeading = 60

// writeList writes a table that is too wide: each row as lines of heading and cell.
func (w *Writer) writeList(rows [][][]cell, width int) {
	for _, row := range rows[1:] {
		for i, cells := range row {
			first := "  "
			if i == 0 {
				first = "• "
			}
			w.page.beginLine(width, first, "  ")
			heading := rows[0][i]
			if len(heading) > maxHeading {
				heading = append(heading[:maxHeading:maxHeading], cell{'…', 0})
			}
			for _, c := range heading {
				w.page.add(c)
			}
			for _, c := range append([]cell{{':', 0}, {' ', 0}}, cells...) {
				w.page.add(c)
			}
			w.page.endLine()
		}
	}
}
