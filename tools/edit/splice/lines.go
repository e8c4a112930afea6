package splice

import "bytes"

// LineStart returns the offset in Text of the start of the line that contains
// at.
func (f *File) LineStart(at int) int {
	return max(f.BodyStart, bytes.LastIndexByte(f.Text[:at], f.EOL)+1)
}

// LineEnd returns the offset in Text of the end of the line that contains at,
// after its line ending.
func (f *File) LineEnd(at int) int {
	if n := bytes.IndexByte(f.Text[at:], f.EOL); n >= 0 {
		return at + n + 1
	}
	return len(f.Text)
}

// SkipFinalBlanks returns the end of the line's content if only white space is
// between it and at; otherwise at.
func (f *File) SkipFinalBlanks(at int) int {
	rest := f.TrimEnding(f.Text[at:f.LineEnd(at)])
	if len(bytes.TrimSpace(rest)) > 0 {
		return at
	}
	return at + len(rest)
}

// AtLineEnd reports whether at is in front of a line ending or at the end of
// Text.
func (f *File) AtLineEnd(at int) bool { return len(f.TrimEnding(f.Text[at:f.LineEnd(at)])) == 0 }

// TrimEnding returns a line without its line ending.
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

// LineNumberer returns a function that converts an offset in Text to a line
// number, from 1. The offsets of consecutive calls must ascend. The function
// must not be called concurrently.
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

// LineCount returns the number of lines, including a last line without an
// ending.
func (f *File) LineCount() int {
	n := bytes.Count(f.Text[f.BodyStart:], []byte{f.EOL})
	if len(f.Text) > f.BodyStart && f.Text[len(f.Text)-1] != f.EOL {
		n++
	}
	return n
}
