package fileedit

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// Notes returns what was unusual about the change, for example created
// directories or a lost attribute: one phrase each, without a period. All tools
// share this wording.
func (o *Outcome) Notes() []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch parents := strings.Join(o.Before.Parents, ", "); {
	case parents == "" || o.Removed:
	case o.DryRun:
		note("would create %s", directoryPhrase(len(o.Before.Parents), parents))
	case len(o.Written.Parents) > 0:
		note("created %s", directoryPhrase(len(o.Before.Parents), parents))
	}
	if o.DryRun || o.Unchanged {
		return notes
	}
	w := o.Written
	if w.InPlace != "" {
		note("written in place because %s: a crash during the write could have left mixed content", w.InPlace)
	}
	if w.OtherNames > 0 {
		verb := "have"
		if w.OtherNames == 1 {
			verb = "has"
		}
		note("%s still %s the old content: this name is now a separate file (if the user starts the server with --keep-hardlinks, they stay one file)", textfmt.Count(int(w.OtherNames), "other hard link"), verb)
	}
	if len(w.Dropped) > 0 {
		note("the file lost %s, which cannot be kept", strings.Join(w.Dropped, ", "))
	}
	if w.Unsynced != nil {
		note("the disk did not confirm the write, which may not survive a power cut: %s", pathname.Escape(w.Unsynced.Error()))
	}
	if o.NoUndo != nil {
		note("no undo: %s", o.NoUndo)
	}
	return notes
}

// directoryPhrase returns names, a list of n directories, after "the directory"
// or "the directories".
func directoryPhrase(n int, names string) string {
	if n == 1 {
		return "the directory " + names
	}
	return "the directories " + names
}
