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
	first []string // above the text
	lines []string // below it
}

// maxNotes bounds the notes of a result, maxNote the bytes of each.
const (
	maxNotes = 20
	maxNote  = 500
)

// Notef adds a line "note: …" to the end of the result of ctx's call. Equal
// notes are shown once, and at most twenty in all. Outside a call it does
// nothing.
func Notef(ctx context.Context, format string, args ...any) {
	if said, ok := ctx.Value(notesKey{}).(*notes); ok {
		said.add(&said.lines, format, args...)
	}
}

// NoteFirstf is Notef for a line above the result: for facts that the reader
// needs first, such as an ignored argument or one taken for another.
func NoteFirstf(ctx context.Context, format string, args ...any) {
	if said, ok := ctx.Value(notesKey{}).(*notes); ok {
		said.add(&said.first, format, args...)
	}
}

func (n *notes) add(to *[]string, format string, args ...any) {
	line := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	line = "note: " + strings.Join(strings.Fields(line), " ")
	if len(line) > maxNote {
		line = cutAtRune(line, maxNote) + "…"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.first)+len(n.lines) < maxNotes && !slices.Contains(n.first, line) && !slices.Contains(n.lines, line) {
		*to = append(*to, line)
	}
}

func (n *notes) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(slices.Concat(n.first, n.lines), "\n")
}

// addTo adds the notes above and below text and cuts text to keep all within
// the budget; notes are not cut.
func (n *notes) addTo(text string, budget int) string {
	notes := n.text()
	if notes == "" {
		return cutText(text, budget)
	}
	text = cutText(text, max(budget-len(notes)-1, 0))
	if text == "" {
		return notes
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) > 0 {
		text = strings.TrimSuffix(text, "\n") + "\n" + strings.Join(n.lines, "\n")
	}
	if len(n.first) > 0 {
		text = strings.Join(n.first, "\n") + "\n" + text
	}
	return text
}
