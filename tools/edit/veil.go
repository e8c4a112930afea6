package main

import (
	"bytes"
	"regexp"
	"sort"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// hidden is what stands for a value in the text that is shown.
const hidden = "***"

// veil is a file whose values are hidden (.env, .npmrc), as view shows it.
// Edits are looked for in what is shown, so that no answer tells a value and
// none can be guessed by trying; a *** that the new text repeats keeps the
// value it stands for.
type veil struct {
	file  *splice.File // as it is
	shown *splice.File // with hidden values
	spans []span       // sorted
}

// span is a stretch of the shown text that is not what the file has: a value,
// or a whole line that could not be read.
type span struct{ shown, shownEnd, start, end int }

func newVeil(f *splice.File) *veil {
	v := &veil{file: f}
	text := append(bytes.Clone(f.Text[:f.Body]), masked(f.Text[f.Body:], f.EOL)...)
	v.shown = &splice.File{
		Format: textfile.Format{Encoding: textfile.UTF8, BOM: f.Body, Ending: f.Ending},
		Raw:    text, Text: text, Body: f.Body, EOL: f.EOL,
	}
	at, shownAt := f.Body, f.Body
	for at < len(f.Text) && shownAt < len(text) {
		end, shownEnd := f.LineEnd(at), v.shown.LineEnd(shownAt)
		v.line(at, end, shownAt, shownEnd)
		at, shownAt = end, shownEnd
	}
	return v
}

// masked hides the values of a text, which masking reads by line feeds.
func masked(text []byte, eol byte) []byte {
	if eol == '\n' {
		return sandbox.MaskSecrets(text)
	}
	lines := bytes.ReplaceAll(text, []byte{eol}, []byte{'\n'})
	return bytes.ReplaceAll(sandbox.MaskSecrets(lines), []byte{'\n'}, []byte{eol})
}

// line notes how a line is shown. What it begins and ends with in common is
// the same in both; where there is more than one value between, the whole is
// one.
func (v *veil) line(at, end, shownAt, shownEnd int) {
	line, shown := v.file.Text[at:end], v.shown.Text[shownAt:shownEnd]
	if bytes.Equal(line, shown) {
		return
	}
	head := bytes.Index(shown, []byte(hidden))
	tail := len(shown) - bytes.LastIndex(shown, []byte(hidden)) - len(hidden)
	v.spans = append(v.spans, span{shownAt + head, shownEnd - tail, at + head, end - tail})
}

// reveal turns changes of the shown text into those of the file.
func (v *veil) reveal(changes []textdiff.Change) ([]textdiff.Change, error) {
	real := make([]textdiff.Change, len(changes))
	for i, c := range changes {
		if writesHidden(c.New, v.shown.Text[v.shown.LineStart(c.Start):c.Start]) {
			return nil, toolerr.New(toolerr.InvalidParams, "new_string would write *** as a value: it stands for values that are hidden, and keeps one only where old_string has it in the same line. Nothing was changed. Leave lines that stay out of the edit, or give the new value.")
		}
		start, ok1 := v.place(c.Start)
		end, ok2 := v.place(c.End)
		if !ok1 || !ok2 {
			return nil, toolerr.New(toolerr.InvalidParams, "the edit changes a part of ***, which stands for a hidden value (line %d); nothing was changed. Replace all of it, or none.", v.shown.Numbers()(c.Start))
		}
		real[i] = textdiff.Change{Start: start, End: end, New: c.New}
	}
	return real, v.check(changes, real)
}

// place returns where in the file a place of the shown text is; false inside
// a hidden value.
func (v *veil) place(at int) (int, bool) {
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

// check refuses an edit that would show what was hidden, as one that makes a
// comment of a value does.
func (v *veil) check(changes, real []textdiff.Change) error {
	after := masked(patched(v.file.Text, real)[v.file.Body:], v.file.EOL)
	want := masked(patched(v.shown.Text, changes)[v.file.Body:], v.file.EOL)
	if !bytes.Equal(after, want) {
		return toolerr.New(toolerr.DeniedPath, "the edit would let hidden values of the file be seen; nothing was changed. Keep names and values together (NAME=***), or replace the value.")
	}
	return nil
}

// patched returns text with changes made.
func patched(text []byte, changes []textdiff.Change) []byte {
	var out []byte
	at := 0
	for _, c := range changes {
		out = append(append(out, text[at:c.Start]...), c.New...)
		at = c.End
	}
	return append(out, text[at:]...)
}

// asValue is *** where a value stands.
var asValue = regexp.MustCompile(`(?m)([=:][ \t]*["'` + "`" + `]?|^[ \t]*)\*\*\*["'` + "`" + `]?[ \t]*([ \t][#;].*)?\r?$`)

// writesHidden reports whether new text holds *** as a value; before is what
// stands before it in its line.
func writesHidden(new string, before []byte) bool {
	return strings.Contains(new, hidden) && asValue.MatchString(string(before)+strings.ReplaceAll(new, "\r", "\n"))
}
