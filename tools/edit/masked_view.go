package main

import (
	"bytes"
	"sort"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// maskMarker replaces a masked value in the text shown.
const maskMarker = "***"

// maskedView is a file with masked values (.env, .npmrc) as view shows it.
// Edits are matched against the shown text, so that no answer reveals a value
// and values cannot be guessed by trial. A *** that the new text repeats keeps
// its value.
type maskedView struct {
	file  *splice.File // the file as it is
	shown *splice.File // the file with *** for its values
	spans []maskedSpan // where the two differ, sorted
}

// maskedSpan is a range of the shown text that differs from the file, and the
// corresponding range of the file, as offsets: a masked value, or a whole line
// that could not be parsed.
type maskedSpan struct{ shownStart, shownEnd, fileStart, fileEnd int }

// newMaskedView returns the masked view of f, with a span for each line that
// masking changes.
func newMaskedView(f *splice.File) *maskedView {
	v := &maskedView{file: f}
	text := append(bytes.Clone(f.Text[:f.BodyStart]), secret.Mask(f.Text[f.BodyStart:])...)
	v.shown = &splice.File{
		Format: textfile.Format{Encoding: textfile.UTF8, BOM: f.BodyStart, Ending: f.Ending},
		Raw:    text, Text: text, BodyStart: f.BodyStart, EOL: f.EOL,
	}
	at, shownAt := f.BodyStart, f.BodyStart
	for at < len(f.Text) && shownAt < len(text) {
		end, shownEnd := f.LineEnd(at), v.shown.LineEnd(shownAt)
		v.recordMaskedSpan(at, end, shownAt, shownEnd)
		at, shownAt = end, shownEnd
	}
	return v
}

// recordMaskedSpan adds the span in which a line of the file differs from the
// shown line. Both lines, given by their offsets, share the text before the
// first and after the last ***. Everything between is one span, even if it has
// several values.
func (v *maskedView) recordMaskedSpan(at, end, shownAt, shownEnd int) {
	line, shown := v.file.Text[at:end], v.shown.Text[shownAt:shownEnd]
	if bytes.Equal(line, shown) {
		return
	}
	head := bytes.Index(shown, []byte(maskMarker))
	tail := len(shown) - bytes.LastIndex(shown, []byte(maskMarker)) - len(maskMarker)
	v.spans = append(v.spans, maskedSpan{shownAt + head, shownEnd - tail, at + head, end - tail})
}

// toFileChanges converts changes of the shown text to changes of the file. It returns
// INVALID_PARAMS for a change that would write *** as a value or replace a part of ***,
// and DENIED_PATH for one that would reveal anything about a value.
func (v *maskedView) toFileChanges(changes []textdiff.Change) ([]textdiff.Change, error) {
	inFile := make([]textdiff.Change, len(changes))
	for i, c := range changes {
		if writesMaskAsValue(c.New, v.shown.Text[v.shown.LineStart(c.Start):c.Start]) {
			return nil, toolerr.New(toolerr.InvalidParams, "new_string would write *** as a value; nothing was changed. *** represents a masked value and keeps it only if old_string has it in the same line. Leave unchanged lines out of the edit, or give the new value.")
		}
		start, ok1 := v.fileOffset(c.Start)
		end, ok2 := v.fileOffset(c.End)
		if !ok1 || !ok2 {
			return nil, toolerr.New(toolerr.InvalidParams, "the edit changes part of ***, which represents a masked value (line %d); nothing was changed. Replace all of it, or none.", v.shown.LineNumberer()(c.Start))
		}
		inFile[i] = textdiff.Change{Start: start, End: end, New: c.New}
	}
	if !v.keepsMaskedLines(changes) {
		return nil, revealError()
	}
	return inFile, v.checkNothingRevealed(changes, inFile)
}

// namePattern matches the part of a line before its value.
var namePattern = lazyregexp.New(`^[ \t]*([#;][ \t]*)?(export[ \t]+)?[\w.-]+[ \t]*[=:][ \t]*$`)

// keepsMaskedLines reports whether each remaining masked value keeps the rest
// of its line, except for a changed name: the masking of a value next to new
// text would reveal something about the value.
func (v *maskedView) keepsMaskedLines(changes []textdiff.Change) bool {
	text, shown := applyChanges(v.shown.Text, changes), v.shown.Text
	i, moved := 0, 0
	for _, s := range v.spans {
		for i < len(changes) && changes[i].End <= s.shownStart {
			moved += len(changes[i].New) - (changes[i].End - changes[i].Start)
			i++
		}
		if i < len(changes) && changes[i].Start < s.shownEnd {
			continue // it is replaced
		}
		before, after := v.restOfLine(shown, s.shownStart, s.shownEnd)
		nowBefore, nowAfter := v.restOfLine(text, s.shownStart+moved, s.shownEnd+moved)
		renamed := len(before) > 0 && namePattern().Match(before) && namePattern().Match(nowBefore)
		if !bytes.Equal(after, nowAfter) || !bytes.Equal(before, nowBefore) && !renamed {
			return false
		}
	}
	return true
}

// restOfLine returns the text before and after a part of a line, without the
// line ending.
func (v *maskedView) restOfLine(text []byte, start, end int) (before, after []byte) {
	from := bytes.LastIndexByte(text[:start], v.file.EOL) + 1
	to := len(text)
	if i := bytes.IndexByte(text[end:], v.file.EOL); i >= 0 {
		to = end + i
	}
	return text[max(from, v.file.BodyStart):start], text[end:to]
}

// revealError returns the DENIED_PATH error for an edit that would reveal a masked value.
func revealError() error {
	return toolerr.New(toolerr.DeniedPath, "the edit would reveal masked values of the file; nothing was changed. Keep names and values together (NAME=***), or replace the value.")
}

// fileOffset converts an offset in the shown text to an offset in the file; ok
// is false inside a masked value.
func (v *maskedView) fileOffset(at int) (offset int, ok bool) {
	i := sort.Search(len(v.spans), func(i int) bool { return v.spans[i].shownEnd >= at })
	switch {
	case i < len(v.spans) && at == v.spans[i].shownEnd:
		return v.spans[i].fileEnd, true
	case i < len(v.spans) && at > v.spans[i].shownStart:
		return 0, false
	case i < len(v.spans) && at == v.spans[i].shownStart:
		return v.spans[i].fileStart, true
	case i == 0:
		return at, true
	}
	before := v.spans[i-1]
	return before.fileEnd + at - before.shownEnd, true
}

// checkNothingRevealed returns an error if view would show a masked value after
// the changes, for example since a value became a comment. inFile has the same
// changes for the file.
func (v *maskedView) checkNothingRevealed(changes, inFile []textdiff.Change) error {
	after := secret.Mask(applyChanges(v.file.Text, inFile)[v.file.BodyStart:])
	want := secret.Mask(applyChanges(v.shown.Text, changes)[v.file.BodyStart:])
	if !bytes.Equal(after, want) {
		return revealError()
	}
	return nil
}

// applyChanges returns text with the changes.
func applyChanges(text []byte, changes []textdiff.Change) []byte {
	var out []byte
	at := 0
	for _, c := range changes {
		out = append(append(out, text[at:c.Start]...), c.New...)
		at = c.End
	}
	return append(out, text[at:]...)
}

// maskedValuePattern matches *** at the place of a line's value.
var maskedValuePattern = lazyregexp.New(`(?m)([=:][ \t]*["'` + "`" + `]?|^[ \t]*)\*\*\*["'` + "`" + `]?[ \t]*([ \t][#;].*)?\r?$`)

// writesMaskAsValue reports whether new text has *** as a value. before is the
// text that precedes it in its line.
func writesMaskAsValue(newText string, before []byte) bool {
	return strings.Contains(newText, maskMarker) && maskedValuePattern().MatchString(string(before)+strings.ReplaceAll(newText, "\r", "\n"))
}
