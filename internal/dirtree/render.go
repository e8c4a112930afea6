package dirtree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// headerSize is the part of the budget reserved for the first line, in bytes.
const headerSize = 1000

// Render returns the listing as text: a header line (path, number of entries,
// shown range), then one line an entry.
func Render(r *Result) string {
	var b strings.Builder
	b.WriteString(r.header())
	b.WriteByte('\n')
	if r.singleFile != nil {
		row := *r.singleFile
		row.isListedFile = true
		row.label = strings.Replace(row.label, r.singleFile.labelWithoutMarks(), r.Path, 1)
		row.writeLine(&b, 0, r.long)
	}
	if r.root != nil {
		r.writeDir(&b, r.root)
	}
	return b.String()
}

// labelWithoutMarks returns the label without the target of a link and the star
// of an executable.
func (row *shownRow) labelWithoutMarks() string {
	name, _, _ := strings.Cut(row.label, " -> ")
	if row.Exec {
		name = strings.TrimSuffix(name, "*")
	}
	return name
}

// writeDir writes the lines of a directory's part of the page, and below them
// those of its subdirectories. Subdirectories that were listed on earlier pages
// come first.
func (r *Result) writeDir(b *strings.Builder, d *dir) {
	for _, kid := range d.sortedEarlierDirs() {
		indent(b, kid.depth-1)
		b.WriteString(d.entries[kid.index].escapedName() + "/ " + kid.coverageNote(true) + "\n")
		r.writeDir(b, kid)
	}
	for _, row := range d.rows {
		row.writeLine(b, d.depth, r.long)
		if row.sub != nil {
			r.writeDir(b, row.sub)
		}
	}
}

// sortedEarlierDirs returns earlierDirs in the order of the directory's
// entries.
func (d *dir) sortedEarlierDirs() []*dir {
	return slices.SortedFunc(slices.Values(d.earlierDirs), func(a, b *dir) int { return a.index - b.index })
}

// indent writes two spaces to b for each level of depth.
func indent(b *strings.Builder, depth int) {
	for range depth {
		b.WriteString("  ")
	}
}

// writeLine writes the row as a line, with its line end, indented by depth
// levels. long adds mode and modification time.
func (row *shownRow) writeLine(b *strings.Builder, depth int, long bool) {
	indent(b, depth)
	b.WriteString(row.label)
	lead := "  "
	add := func(text string) {
		if text != "" {
			b.WriteString(lead + text)
			lead = " "
		}
	}
	if row.sub != nil {
		add(row.sub.coverageNote(false))
	}
	add(row.remark())
	if row.Lines != nil {
		add(fmt.Sprintf("[%d]", *row.Lines))
	}
	if row.Size != nil && (long || row.isListedFile || !row.lineCountShowsSize()) {
		add(textfmt.ShortBytes(*row.Size))
	}
	add(row.Git)
	if long {
		add(row.Mode)
		add(row.Modified)
	}
	b.WriteByte('\n')
}

// maxAverageLine is the largest average length of a line, in bytes, of an
// ordinary text.
const maxAverageLine = 200

// lineCountShowsSize reports whether the line count is enough to show the
// file's size: the file has lines of ordinary length. The size then is omitted,
// because it would only repeat the count for every file of a source tree.
func (row *shownRow) lineCountShowsSize() bool {
	return row.Lines != nil && *row.Size <= maxAverageLine*int64(*row.Lines)
}

// remark returns the note on a secret, ignored, unreadable or special entry, in
// parentheses. It returns "" for any other entry.
func (row *shownRow) remark() string {
	switch {
	case row.Secret:
		return "(secret, not readable)"
	case row.Ignored && row.Files == nil:
		return "(ignored)"
	case row.Ignored && row.AtLeast:
		return fmt.Sprintf("(ignored, %d+ files)", *row.Files)
	case row.Ignored:
		return "(ignored, " + textfmt.Count(*row.Files, "file") + ")"
	case row.Error != "" && row.sub == nil:
		return "(unreadable: " + row.Error + ")"
	case row.Type != "file" && row.Type != "directory" && row.Type != "link":
		return "(" + row.Type + ")"
	}
	return ""
}

// lineLength returns the approximate length of the row's line, in bytes. The
// note next to a listed directory is not included, because it is not known yet.
func (row shownRow) lineLength(depth int, long bool) int {
	var b strings.Builder
	row.sub = nil // the text next to a directory is not known yet
	row.writeLine(&b, depth, long)
	return b.Len()
}

// coverageNote returns a note, in parentheses, on which of the directory's entries
// are on this page; "" if all are. continued means that the directory itself
// was shown on an earlier page.
func (d *dir) coverageNote(continued bool) string {
	total := len(d.entries)
	from, to := d.rowsFrom+1, d.rowsFrom+len(d.rows)
	switch {
	case d.err != nil:
		return "(unreadable: " + errorWithoutPath(d.err) + ")"
	case !d.loaded:
		return "(not listed yet)"
	case total == 0 && d.ignoredFiles > 0:
		return "(only " + textfmt.Count(d.ignoredFiles, "ignored file") + ")"
	case total == 0:
		return "(empty)"
	case continued && (len(d.rows) == 0 || len(d.rows) == total):
		return "(continued)"
	case len(d.rows) == 0:
		return fmt.Sprintf("(%s left out)", textfmt.Count(total, "entry"))
	case from == 1 && to == total:
		return ""
	case from == 1:
		return fmt.Sprintf("(first %d of %d)", to, total)
	}
	return fmt.Sprintf("(%d-%d of %d)", from, to, total)
}

// header returns the first line of the text: path, number of entries, shown
// range and notes.
func (r *Result) header() string {
	if r.singleFile != nil {
		return r.Path + ": " + r.singleFile.Type
	}
	var b strings.Builder
	b.WriteString(r.Path + ": ")
	shown, first := r.shownRows, r.Offset+1
	switch {
	case r.Total == 0:
		b.WriteString("empty")
	case shown == 0:
		fmt.Fprintf(&b, "no entries from offset %d, %s in total", r.Offset, textfmt.Count(r.Total, "entry"))
	case shown == r.Total && r.TotalExact:
		b.WriteString(textfmt.Count(r.Total, "entry"))
	case r.TotalExact:
		fmt.Fprintf(&b, "%s of %d", entryRange(first, r.Offset+shown), r.Total)
	default:
		fmt.Fprintf(&b, "%s of more than %d", entryRange(first, r.Offset+shown), r.Total)
	}
	fmt.Fprintf(&b, ", depth %d", r.Depth)
	if notes := r.notes(); len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, "; ") + ")")
	}
	return b.String()
}

// entryRange formats a range of entries: "entry 3", "entries 3-5".
func entryRange(first, last int) string {
	if first == last {
		return fmt.Sprintf("entry %d", first)
	}
	return fmt.Sprintf("entries %d-%d", first, last)
}

// notes returns the notes of the first line, without parentheses.
func (r *Result) notes() []string {
	var notes []string
	if r.note != "" {
		notes = append(notes, r.note)
	}
	if r.NextOffset > 0 {
		notes = append(notes, fmt.Sprintf("offset=%d for more", r.NextOffset))
	}
	if d := r.root; len(d.rows) > 0 && len(d.rows) < len(d.entries) && len(d.entries) < r.Total {
		notes = append(notes, fmt.Sprintf("%d-%d of %d top-level entries", d.rowsFrom+1, d.rowsFrom+len(d.rows), len(d.entries)))
	}
	if r.Ignored > 0 {
		notes = append(notes, textfmt.Count(r.Ignored, "ignored file")+" not shown, no_ignore=true to include")
	}
	if r.Excluded > 0 {
		notes = append(notes, fmt.Sprintf("%d excluded by ignore", r.Excluded))
	}
	if r.Hidden > 0 {
		notes = append(notes, fmt.Sprintf("%d hidden not shown, hidden=true to include", r.Hidden))
	}
	if r.Unreadable > 0 {
		note := fmt.Sprintf("%d unreadable: %s", r.Unreadable, strings.Join(r.Unread, ", "))
		if r.Unreadable > len(r.Unread) {
			note += ", …"
		}
		notes = append(notes, note)
	}
	if r.unreadIgnoreNote != "" {
		notes = append(notes, r.unreadIgnoreNote)
	}
	if r.LinesCut {
		notes = append(notes, "some line counts omitted to save time")
	}
	return notes
}
