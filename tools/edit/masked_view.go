package main

import (
	"bytes"
	"regexp"
	"sort"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// hidden replaces a masked value in the text shown.
const hidden = "***"

// maskedView is a file with masked values (.env, .npmrc), as view shows it.
// Edits are matched against the shown text, so that no answer reveals a value
// and values cannot be guessed by trial; a *** repeated in the new text keeps
// its value.
type maskedView struct {
	file  *splice.File // the original
	shown *splice.File // with masked values
	spans []span       // sorted
}

// span is a range of the shown text that differs from the file: a masked value,
// or a whole line that could not be parsed.
type span struct{ shown, shownEnd, start, end int }

func newMaskedView(f *splice.File) *maskedView {
	v := &maskedView{file: f}
	text := append(bytes.Clone(f.Text[:f.Body]), secret.Mask(f.Text[f.Body:])...)
	v.shown = &splice.File{
		Format: textfile.Format{Encoding: textfile.UTF8, BOM: f.Body, Ending: f.Ending},
		Raw:    text, Text: text, Body: f.Body, EOL: f.EOL,
	}
	at, shownAt := f.Body, f.Body
	for at < len(f.Text) && shownAt < len(text) {
		end, shownEnd := f.LineEnd(at), v.shown.LineEnd(shownAt)
		v.recordLine(at, end, shownAt, shownEnd)
		at, shownAt = end, shownEnd
	}
	return v
}

// recordLine records how a line is shown. The shown line and the original share
// the text before the first and after the last ***; everything between becomes
// one span, even if it has several values.
func (v *maskedView) recordLine(at, end, shownAt, shownEnd int) {
	line, shown := v.file.Text[at:end], v.shown.Text[shownAt:shownEnd]
	if bytes.Equal(line, shown) {
		return
	}
	head := bytes.Index(shown, []byte(hidden))
	tail := len(shown) - bytes.LastIndex(shown, []byte(hidden)) - len(hidden)
	v.spans = append(v.spans, span{shownAt + head, shownEnd - tail, at + head, end - tail})
}

// reveal converts changes of the shown text to changes of the file.
func (v *maskedView) reveal(changes []textdiff.Change) ([]textdiff.Change, error) {
	inFile := make([]textdiff.Change, len(changes))
	for i, c := range changes {
		if writesHidden(c.New, v.shown.Text[v.shown.LineStart(c.Start):c.Start]) {
			return nil, toolerr.New(toolerr.InvalidParams, "new_string would write *** as a value; nothing was changed. *** represents a masked value and keeps it only if old_string has it in the same line. Leave unchanged lines out of the edit, or give the new value.")
		}
		start, ok1 := v.toFile(c.Start)
		end, ok2 := v.toFile(c.End)
		if !ok1 || !ok2 {
			return nil, toolerr.New(toolerr.InvalidParams, "the edit changes part of ***, which represents a masked value (line %d); nothing was changed. Replace all of it, or none.", v.shown.Numbers()(c.Start))
		}
		inFile[i] = textdiff.Change{Start: start, End: end, New: c.New}
	}
	if !v.keepsLines(changes) {
		return nil, errRevealed()
	}
	return inFile, v.check(changes, inFile)
}

// namePart matches the text before a value in its line.
var namePart = regexp.MustCompile(`^[ \t]*([#;][ \t]*)?(export[ \t]+)?[\w.-]+[ \t]*[=:][ \t]*$`)

// keepsLines reports whether each remaining masked value keeps the rest of its
// line, except for a changed name: the masking of a value next to new text
// would reveal something about it.
func (v *maskedView) keepsLines(changes []textdiff.Change) bool {
	text, shown := patched(v.shown.Text, changes), v.shown.Text
	i, moved := 0, 0
	for _, s := range v.spans {
		for i < len(changes) && changes[i].End <= s.shown {
			moved += len(changes[i].New) - (changes[i].End - changes[i].Start)
			i++
		}
		if i < len(changes) && changes[i].Start < s.shownEnd {
			continue // it is replaced
		}
		before, behind := v.surroundings(shown, s.shown, s.shownEnd)
		nowBefore, nowBehind := v.surroundings(text, s.shown+moved, s.shownEnd+moved)
		renamed := len(before) > 0 && namePart.Match(before) && namePart.Match(nowBefore)
		if !bytes.Equal(behind, nowBehind) || !bytes.Equal(before, nowBefore) && !renamed {
			return false
		}
	}
	return true
}

// surroundings returns the text before and after a part of a line.
func (v *maskedView) surroundings(text []byte, start, end int) (before, behind []byte) {
	from := bytes.LastIndexByte(text[:start], v.file.EOL) + 1
	to := len(text)
	if i := bytes.IndexByte(text[end:], v.file.EOL); i >= 0 {
		to = end + i
	}
	return text[max(from, v.file.Body):start], text[end:to]
}

func errRevealed() error {
	return toolerr.New(toolerr.DeniedPath, "the edit would reveal masked values of the file; nothing was changed. Keep names and values together (NAME=***), or replace the value.")
}

// toFile converts a position of the shown text to a position of the file; false
// inside a masked value.
func (v *maskedView) toFile(at int) (int, bool) {
	i := sort.Search(len(v.spans), func(i int) bool { return v.spans[i].shownEnd >= at })
	switch {
	case i < len(v.spans) && at == v.spans[i].shownEnd:
		return v.spans[i].end, true
	case i < len(v.spans) && at > v.spans[i].shown:
		return 0, false
	case i < len(v.spans) && at == v.spans[i].shown:
		return v.spans[i].start, true
	case i == 0:
		return at, true
	}
	before := v.spans[i-1]
	return before.end + at - before.shownEnd, true
}

// check refuses an edit that would show a masked value, for example by turning
// it into a comment.
func (v *maskedView) check(changes, inFile []textdiff.Change) error {
	after := secret.Mask(patched(v.file.Text, inFile)[v.file.Body:])
	want := secret.Mask(patched(v.shown.Text, changes)[v.file.Body:])
	if !bytes.Equal(after, want) {
		return errRevealed()
	}
	return nil
}

// patched returns text with changes applied.
func patched(text []byte, changes []textdiff.Change) []byte {
	var out []byte
	at := 0
	for _, c := range changes {
		out = append(append(out, text[at:c.Start]...), c.New...)
		at = c.End
	}
	return append(out, text[at:]...)
}

// asValue matches *** in the position of a value.
var asValue = regexp.MustCompile(`(?m)([=:][ \t]*["'` + "`" + `]?|^[ \t]*)\*\*\*["'` + "`" + `]?[ \t]*([ \t][#;].*)?\r?$`)

// writesHidden reports whether new text has *** as a value; before is the text
// before it in its line.
func writesHidden(newText string, before []byte) bool {
	return strings.Contains(newText, hidden) && asValue.MatchString(string(before)+strings.ReplaceAll(newText, "\r", "\n"))
}
