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
	text := append(bytes.Clone(f.Text[:f.Body]), sandbox.MaskSecrets(f.Text[f.Body:])...)
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
			return nil, toolerr.New(toolerr.InvalidParams, "new_string would write *** as a value; nothing was changed. *** represents a masked value and keeps it only if old_string has it in the same line. Leave unchanged lines out of the edit, or give the new value.")
		}
		start, ok1 := v.place(c.Start)
		end, ok2 := v.place(c.End)
		if !ok1 || !ok2 {
			return nil, toolerr.New(toolerr.InvalidParams, "the edit changes part of ***, which represents a masked value (line %d); nothing was changed. Replace all of it, or none.", v.shown.Numbers()(c.Start))
		}
		real[i] = textdiff.Change{Start: start, End: end, New: c.New}
	}
	if !v.apart(changes) {
		return nil, errSeen()
	}
	return real, v.check(changes, real)
}

// namePart is what may stand before a value in its line.
var namePart = regexp.MustCompile(`^[ \t]*([#;][ \t]*)?(export[ \t]+)?[\w.-]+[ \t]*[=:][ \t]*$`)

// apart reports whether each hidden value that stays keeps what stands beside
// it in its line, but for another name: how a value is shown together with
// new text would tell of it.
func (v *veil) apart(changes []textdiff.Change) bool {
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
		before, behind := v.beside(shown, s.shown, s.shownEnd)
		nowBefore, nowBehind := v.beside(text, s.shown+moved, s.shownEnd+moved)
		renamed := len(before) > 0 && namePart.Match(before) && namePart.Match(nowBefore)
		if !bytes.Equal(behind, nowBehind) || !bytes.Equal(before, nowBefore) && !renamed {
			return false
		}
	}
	return true
}

// beside returns what stands before and behind a part of a line.
func (v *veil) beside(text []byte, start, end int) (before, behind []byte) {
	from := bytes.LastIndexByte(text[:start], v.file.EOL) + 1
	to := len(text)
	if i := bytes.IndexByte(text[end:], v.file.EOL); i >= 0 {
		to = end + i
	}
	return text[max(from, v.file.Body):start], text[end:to]
}

func errSeen() error {
	return toolerr.New(toolerr.DeniedPath, "the edit would reveal masked values of the file; nothing was changed. Keep names and values together (NAME=***), or replace the value.")
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
	after := sandbox.MaskSecrets(patched(v.file.Text, real)[v.file.Body:])
	want := sandbox.MaskSecrets(patched(v.shown.Text, changes)[v.file.Body:])
	if !bytes.Equal(after, want) {
		return errSeen()
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
