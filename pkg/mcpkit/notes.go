package mcpkit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

type notesKey struct{}

// notes collects the notes of one call.
type notes struct {
	mu    sync.Mutex
	above []string // above the text
	below []string // below it
}

// maxNotes bounds the notes of a result, maxNote the bytes of each.
const (
	maxNotes     = 20
	maxNoteBytes = 500
)

// Notef adds a line "note: …" to the end of the result of ctx's call. Equal
// notes are shown once, and at most twenty in all. Outside a call it does
// nothing.
func Notef(ctx context.Context, format string, args ...any) {
	if collected, ok := ctx.Value(notesKey{}).(*notes); ok {
		collected.add(&collected.below, format, args...)
	}
}

// NoteFirstf is Notef for a line above the result: for facts that the reader
// needs first, such as an ignored argument or one taken for another.
func NoteFirstf(ctx context.Context, format string, args ...any) {
	if collected, ok := ctx.Value(notesKey{}).(*notes); ok {
		collected.add(&collected.above, format, args...)
	}
}

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

func (n *notes) joined() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(slices.Concat(n.above, n.below), "\n")
}

// addTo adds the notes above and below text and cuts text to keep all within
// the budget; notes are not cut.
func (n *notes) addTo(text string, budget int) string {
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
