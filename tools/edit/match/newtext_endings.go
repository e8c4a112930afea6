package match

// neighbour returns the line ending at the place: that of its first line, or of
// the line before. It is cached for further places in a long line.
func (b *changeBuilder) nearbyEnding() string {
	at := b.where.start
	if at < b.cachedLine.start || at >= b.cachedLine.end {
		b.cachedLine = place{b.file.LineStart(at), b.file.LineEnd(at)}
		b.cachedEnding = b.lineEnding(b.cachedLine)
		if b.cachedEnding == "" && b.cachedLine.start > b.file.BodyStart {
			b.cachedEnding = b.lineEnding(place{b.file.LineStart(b.cachedLine.start - 1), b.cachedLine.start})
		}
		if b.cachedEnding == "" {
			b.cachedEnding = string(b.file.EOL)
		}
	}
	return b.cachedEnding
}

func (b *changeBuilder) lineEnding(line place) string {
	text := b.file.Text[line.start:line.end]
	return string(text[len(b.file.TrimEnding(text)):])
}

// end writes the ending of a new line: that of the old line that it replaces,
// or else of the line before. Blanks before the ending are kept on unchanged
// lines only.
func (b *changeBuilder) writeEnding(with linePair) {
	if with.oldLine < 0 || with.oldLine >= len(b.parts) || b.parts[with.oldLine].end == b.parts[with.oldLine].blanksEnd {
		if b.lastEnding == "" {
			b.lastEnding = b.nearbyEnding()
		}
		b.insert(b.lastEnding)
		return
	}
	part := b.parts[with.oldLine]
	from := part.blanksEnd
	if with.equal {
		from = part.textEnd
	}
	b.keep(from, part.end)
	b.lastEnding = string(b.file.Text[part.blanksEnd:part.end])
}
