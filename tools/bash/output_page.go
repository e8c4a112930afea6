package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// outputPage returns the output from a byte offset on, escaped, within a number
// of characters and of bytes, and the offset of the next page. Consecutive
// pages contain every byte exactly once. An incomplete character at the end is
// left to the next page, unless the output is over. skipped counts the bytes
// before the page that were not kept.
func outputPage(o *proc.Output, from int64, characters, budget int, over bool) (text string, next, skipped int64) {
	buf := make([]byte, characters*utf8.UTFMax)
	got := 0
	at := from
	for got < len(buf) {
		n, gap, err := o.Read(at, buf[got:])
		if gap > 0 && got > 0 {
			break // the gap belongs to the next page
		}
		if err != nil || n == 0 && gap == 0 {
			break
		}
		skipped += gap
		at += gap + int64(n)
		got += n
		if n == 0 {
			break
		}
	}
	raw := buf[:got]
	if !over || at < o.Size() {
		raw = raw[:len(raw)-incompleteRuneLen(raw)]
	}
	var b strings.Builder
	used := 0
	for count := 0; used < len(raw) && count < characters; count++ {
		r, size := utf8.DecodeRune(raw[used:])
		piece := string(raw[used : used+size])
		if r == utf8.RuneError && size == 1 {
			piece = fmt.Sprintf(`\x%02x`, raw[used])
		} else if r == '\r' {
			if used+1 == len(raw) && !over {
				break // its line feed may still arrive
			}
			if used+1 < len(raw) && raw[used+1] == '\n' {
				used++
				continue
			}
			piece = `\r`
		} else if isUnsafe(r) {
			piece = escapeUnsafe(piece).text
		}
		if b.Len()+len(piece) > budget && used > 0 {
			break
		}
		b.WriteString(piece)
		used += size
	}
	return b.String(), from + skipped + int64(used), skipped
}

// incompleteRuneLen returns the number of bytes at the end of p that begin an
// incomplete character.
func incompleteRuneLen(p []byte) int {
	for n := 1; n <= min(len(p), utf8.UTFMax-1); n++ {
		if c := p[len(p)-n]; utf8.RuneStart(c) {
			if c >= 0xc0 && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// outputSoFar returns the output of a command at the time it becomes a job, and moves
// the cursor after it. It returns "" for an empty output.
func (s *bashTool) outputSoFar(j *job, m *meta, budget int) string {
	size := j.output.Size()
	if size == 0 {
		return ""
	}
	j.mu.Lock()
	j.cursor, m.Cursor = size, size
	j.mu.Unlock()
	return s.renderOutput(j.fs, j.output, budget, m).text
}
