package match

// nearbyEnding returns the line ending for new lines at the place: the ending of its
// first line, otherwise of the line before, otherwise the file's usual one. The result is
// cached for further places in a long line.
func (b *changeBuilder) nearbyEnding() string {
	at := b.where.start
	if at < b.cachedLine.start || at >= b.cachedLine.end {
		b.cachedLine = place{b.file.LineStart(at), b.file.LineEnd(at)}
		b.cachedEnding = b.endingInFile(b.cachedLine)
		if b.cachedEnding == "" && b.cachedLine.start > b.file.BodyStart {
			b.cachedEnding = b.endingInFile(place{b.file.LineStart(b.cachedLine.start - 1), b.cachedLine.start})
		}
		if b.cachedEnding == "" {
			b.cachedEnding = string(b.file.EOL)
		}
	}
	return b.cachedEnding
}

// endingInFile returns the line ending that a line of the file has; "" if it has none.
func (b *changeBuilder) endingInFile(line place) string {
	text := b.file.Text[line.start:line.end]
	return string(text[len(b.file.TrimEnding(text)):])
}

// writeEnding writes the line ending of a new line: the ending of the old line that it
// replaces, otherwise of the line written before. On a line that is equal to its old
// line, blanks before the ending are kept.
func (b *changeBuilder) writeEnding(with linePair) {
	if with.oldLine < 0 || with.oldLine >= len(b.parts) || b.parts[with.oldLine].end == b.parts[with.oldLine].blanksEnd {
		if b.lastEnding == "" {
			b.lastEnding = b.nearbyEnding()
		}
		b.insertText(b.lastEnding)
		return
	}
	part := b.parts[with.oldLine]
	from := part.blanksEnd
	if with.equal {
		from = part.textEnd
	}
	b.keepFileText(from, part.end)
	b.lastEnding = string(b.file.Text[part.blanksEnd:part.end])
}
