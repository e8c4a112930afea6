package mcpkit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// notesKey is the context key of a call's *notes.
type notesKey struct{}

// notes collects the notes of one call. It is safe for concurrent use.
type notes struct {
	mu    sync.Mutex
	above []string // lines above the result's text
	below []string // lines below it
}

// Bounds of the notes of a result.
const (
	maxNotes     = 20  // number of notes in a result; later ones are dropped
	maxNoteBytes = 500 // bytes of one note; the rest is cut
)

// Notef adds a line "note: …" at the end of the result of ctx's call. Equal
// notes are shown once, and at most twenty in all. Outside a call it does
// nothing.
func Notef(ctx context.Context, format string, args ...any) {
	if collected, ok := ctx.Value(notesKey{}).(*notes); ok {
		collected.add(&collected.below, format, args...)
	}
}

// NoteFirstf is Notef for a line above the result: for facts that the reader
// needs first, such as an ignored argument or a converted value.
func NoteFirstf(ctx context.Context, format string, args ...any) {
	if collected, ok := ctx.Value(notesKey{}).(*notes); ok {
		collected.add(&collected.above, format, args...)
	}
}

// add adds a note, in one line and cut to maxNoteBytes, to n.above or n.below,
// unless the same note is there already or there are maxNotes.
func (n *notes) add(to *[]string, format string, args ...any) {
	line := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	line = "note: " + strings.Join(strings.Fields(line), " ")
	if len(line) > maxNoteBytes {
		line = cutAtRune(line, maxNoteBytes) + "…"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.above)+len(n.below) < maxNotes && !slices.Contains(n.above, line) && !slices.Contains(n.below, line) {
		*to = append(*to, line)
	}
}

// joined returns all notes, those above first, one a line; "" if there are
// none.
func (n *notes) joined() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(slices.Concat(n.above, n.below), "\n")
}

// surround returns text with the lines above before it and those below after
// it. It cuts the text, but not the notes, to at most budget bytes in all.
func (n *notes) surround(text string, budget int) string {
	notes := n.joined()
	if notes == "" {
		return cutToLimit(text, budget)
	}
	text = cutToLimit(text, max(budget-len(notes)-1, 0))
	if text == "" {
		return notes
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.below) > 0 {
		text = strings.TrimSuffix(text, "\n") + "\n" + strings.Join(n.below, "\n")
	}
	if len(n.above) > 0 {
		text = strings.Join(n.above, "\n") + "\n" + text
	}
	return text
}
