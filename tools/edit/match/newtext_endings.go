package match

// neighbour returns the line ending at the place: that of its first line, or of
// the line before. It is cached for further places in a long line.
func (b *builder) neighbour() string {
	at := b.where.start
	if at < b.line.start || at >= b.line.end {
		b.line = place{b.f.LineStart(at), b.f.LineEnd(at)}
		b.lineEnd = b.endingOf(b.line)
		if b.lineEnd == "" && b.line.start > b.f.Body {
			b.lineEnd = b.endingOf(place{b.f.LineStart(b.line.start - 1), b.line.start})
		}
		if b.lineEnd == "" {
			b.lineEnd = string(b.f.EOL)
		}
	}
	return b.lineEnd
}

func (b *builder) endingOf(line place) string {
	text := b.f.Text[line.start:line.end]
	return string(text[len(b.f.Content(text)):])
}

// end writes the ending of a new line: that of the old line that it replaces,
// or else of the line before. Blanks before the ending are kept on unchanged
// lines only.
func (b *builder) end(with partner) {
	if with.line < 0 || with.line >= len(b.part) || b.part[with.line].end == b.part[with.line].blanks {
		if b.ending == "" {
			b.ending = b.neighbour()
		}
		b.put(b.ending)
		return
	}
	part := b.part[with.line]
	from := part.blanks
	if with.equal {
		from = part.text
	}
	b.keep(from, part.end)
	b.ending = string(b.f.Text[part.blanks:part.end])
}
