package splice

import "bytes"

// LineStart returns the start of the line that contains a position of Text.
func (f *File) LineStart(at int) int {
	return max(f.BodyStart, bytes.LastIndexByte(f.Text[:at], f.EOL)+1)
}

// LineEnd returns the end of that line, after its ending.
func (f *File) LineEnd(at int) int {
	if n := bytes.IndexByte(f.Text[at:], f.EOL); n >= 0 {
		return at + n + 1
	}
	return len(f.Text)
}

// BlanksEnd returns the end of the blanks at a position of Text if they end the
// line's content; otherwise the position.
func (f *File) SkipFinalBlanks(at int) int {
	rest := f.TrimEnding(f.Text[at:f.LineEnd(at)])
	if len(bytes.TrimSpace(rest)) > 0 {
		return at
	}
	return at + len(rest)
}

// AtLineEnd reports whether the line's content ends at a position of Text.
func (f *File) AtLineEnd(at int) bool { return len(f.TrimEnding(f.Text[at:f.LineEnd(at)])) == 0 }

// Content returns a line without its ending.
func (f *File) TrimEnding(line []byte) []byte {
	n := len(line)
	if n == 0 || line[n-1] != f.EOL {
		return line
	}
	if n--; f.EOL == '\n' && n > 0 && line[n-1] == '\r' {
		n--
	}
	return line[:n]
}

// Numbers returns a function that returns the line number (1-based) of a
// position of Text. Positions must be ascending.
func (f *File) LineNumberer() func(at int) int {
	last, line := f.BodyStart, 1
	return func(at int) int {
		if f.stride > 0 && len(f.lineCounts) > 0 {
			if i := min(at/f.stride, len(f.lineCounts)-1); i*f.stride > last {
				last, line = i*f.stride, int(f.lineCounts[i])+1
			}
		}
		if at > last {
			line += bytes.Count(f.Text[last:at], []byte{f.EOL})
			last = at
		}
		return line
	}
}

// Lines returns the number of lines, including a last one without an ending.
func (f *File) LineCount() int {
	n := bytes.Count(f.Text[f.BodyStart:], []byte{f.EOL})
	if len(f.Text) > f.BodyStart && f.Text[len(f.Text)-1] != f.EOL {
		n++
	}
	return n
}
