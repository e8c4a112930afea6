package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxDiffed bounds the size of files to compare, in bytes.
const maxDiffed = 1 << 20

// maxDiffLines bounds the diff lines of a file.
const maxDiffLines = 200

// diffResult returns pending changes as unified diffs, within the answer's budget.
// files selects some; nil: all except git's own. It returns NOT_FOUND if files select
// no change.
func diffResult(ctx context.Context, fsys *sandbox.FS, set *changes.Set, files []string) (*mcpkit.Result, error) {
	roots, err := set.Roots()
	if err != nil {
		return nil, err
	}
	list, err := set.Changes()
	if err != nil {
		return nil, err
	}
	files = fileNames(roots, list, files)
	budget := mcpkit.Budget(ctx) - noteBytes
	var b strings.Builder
	left, shownAny := 0, false
	for _, c := range list {
		if !c.IsShown() && !isTouchedLink(c) || isGitData(c.Path) && len(files) == 0 || !changes.Selects(files, roots[c.Root], c.Path) {
			continue
		}
		shownAny = true
		if left > 0 || ctx.Err() != nil {
			left++
			continue
		}
		text := diffChange(ctx, fsys, roots[c.Root], c)
		if b.Len()+len(text) > budget {
			left++
			continue
		}
		b.WriteString(text)
	}
	if !shownAny && len(files) > 0 {
		return nil, toolerr.New(toolerr.NotFound, "changes %s have nothing in %s", set.ID(), shorten(pathname.Escape(strings.Join(files, ", ")), 200))
	}
	if left > 0 {
		fmt.Fprintf(&b, "[… %s more not shown: name them with files …]\n", textfmt.Count(left, "file"))
	}
	fmt.Fprintf(&b, "changes %s: %s\n", set.ID(), summarizeChanges(fsys, roots, changes.Entries(list)))
	return &mcpkit.Result{Text: b.String(), Meta: meta{}}, nil
}

// diffChange returns one change: a diff for text, a line for anything else.
func diffChange(ctx context.Context, fsys *sandbox.FS, root string, c changes.Change) string {
	path := filepath.Join(root, filepath.FromSlash(c.Path))
	name := fsys.Display(path)
	line := func(format string, args ...any) string {
		return fmt.Sprintf("%s %s", c.Kind, quoteName(name)) + fmt.Sprintf(format, args...) + "\n"
	}
	switch {
	case c.Kind == changes.Deleted && c.Old.IsDir():
		return line("/ with all of its contents%s", movedText(root, c))
	case fsys.Denied(path) || fsys.Masked(path):
		return line(" (content not shown: it may hold secrets) %s", linksText(c))
	case c.New != nil && c.New.IsDir():
		return line("/ %s", modeText(c))
	}
	before, beforeOK := contentBefore(fsys, path, c)
	after, afterOK := contentAfter(c)
	if !beforeOK || !afterOK {
		return line(" %s%s", sizeText(c), movedText(root, c))
	}
	if bytes.Equal(before, after) {
		return line(" %s%s", modeText(c), movedText(root, c))
	}
	o := textdiff.Options{Old: "a/" + name, New: "b/" + name, MaxLines: maxDiffLines, MaxLineBytes: 2000, WindowChars: 200, Stopped: func() bool { return ctx.Err() != nil }}
	if c.Kind == changes.Created {
		o.Old = "/dev/null"
	} else if c.Kind == changes.Deleted {
		o.New = "/dev/null"
	}
	diff := textdiff.Unified(before, textdiff.Between(before, string(after)), o)
	text := escapeUnsafe(diff.Text).text
	if diff.Cut > 0 {
		text += fmt.Sprintf("(%d more diff lines; +%d -%d in total)\n", diff.Cut, diff.Added, diff.Removed)
	}
	if m := strings.TrimSpace(modeText(c) + movedText(root, c)); m != "" {
		text = fmt.Sprintf("%s %s\n", quoteName(name), m) + text
	}
	return text
}

// modeText describes a changed mode or type, and further names of the file; ""
// if there are none.
func modeText(c changes.Change) string {
	var parts []string
	if c.Old != nil && c.New != nil && c.Old.Mode() != c.New.Mode() {
		parts = append(parts, fmt.Sprintf("mode %v → %v", c.Old.Mode(), c.New.Mode()))
	}
	if text := linksText(c); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// isTouchedLink reports whether a file with several hard links keeps its content and mode:
// the time may differ, or the file may be another one.
func isTouchedLink(c changes.Change) bool { return c.Kind == changes.Touched && c.OtherHardLinks() > 0 }

// linksText says what the change of a file means for its other hard links, its other
// names; "" for a file without them.
func linksText(c changes.Change) string {
	n := c.OtherHardLinks()
	names := textfmt.Count(n, "other name")
	switch {
	case n == 0:
		return ""
	case c.Kind == changes.Deleted:
		return fmt.Sprintf("(%s of this file may stay; if the command moved it, its new name is another file)", names)
	case c.Kind == changes.Touched:
		return fmt.Sprintf("(same content, %s: apply gives them the new time, too; if the command has put another file in its place, apply leaves the hard link)", names)
	}
	return fmt.Sprintf("(%s: if the content is new, apply makes this name a separate file; if only the mode or time is new, they get it, too)", names)
}

// maxLinked bounds the files with several hard links that an answer names.
const maxLinked = 8

// linkedNames names the changed files of list that have other hard links in the root, "" if
// there are none. Deleted ones are left out, unless a file was created, which may be the
// moved one.
func linkedNames(fsys *sandbox.FS, roots []string, list []changes.Entry) string {
	created := slices.ContainsFunc(list, func(e changes.Entry) bool { return e.Kind == changes.Created && !e.Dir })
	var names []string
	count := 0
	for _, e := range list {
		if !e.Linked || e.Kind == changes.Deleted && !created {
			continue
		}
		if count++; count <= maxLinked {
			names = append(names, quoteName(fsys.Display(filepath.Join(roots[e.Root], filepath.FromSlash(e.Path)))))
		}
	}
	if count > maxLinked {
		names = append(names, fmt.Sprintf("and %d more", count-maxLinked))
	}
	return strings.Join(names, " ")
}

// movedText names what a copy of a deleted file or directory lacks, which mv makes; "" if
// it lacks nothing.
func movedText(root string, c changes.Change) string {
	names := c.LostByCopy(root)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (had %s, which a copy lacks: if the command moved it, with mv, the new one is a copy)", shorten(escapeUnsafe(strings.Join(names, ", ")).text, 200))
}

// sizeText describes the sizes before and after a change.
func sizeText(c changes.Change) string {
	switch {
	case c.Old == nil:
		return fmt.Sprintf("(%v, %d bytes)", c.New.Mode(), c.New.Size())
	case c.New == nil:
		return strings.TrimSpace(fmt.Sprintf("(%v, %d bytes) %s", c.Old.Mode(), c.Old.Size(), modeText(c)))
	}
	return strings.TrimSpace(fmt.Sprintf("(%d → %d bytes) %s", c.Old.Size(), c.New.Size(), modeText(c)))
}

// contentBefore returns the content in the root; nil if the file is new. ok is
// false for content that is not shown: binary, too large or unreadable.
func contentBefore(fsys *sandbox.FS, path string, c changes.Change) (content []byte, ok bool) {
	if c.Old == nil {
		return nil, true
	}
	if !c.Old.Mode().IsRegular() || c.Old.Size() > maxDiffed {
		return nil, false
	}
	f, err := fsys.WithNearbySuggestions().Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // only read
	return readShowable(f)
}

// contentAfter returns the content after the change; nil if the file was deleted. ok is
// as for contentBefore.
func contentAfter(c changes.Change) (content []byte, ok bool) {
	if c.New == nil {
		return nil, true
	}
	if !c.New.Mode().IsRegular() || c.New.Size() > maxDiffed {
		return nil, false
	}
	f, err := c.Open()
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // only read
	return readShowable(f)
}

// readShowable reads a text. It returns false if the content is too large, no
// UTF-8 text, or a private key.
func readShowable(r io.Reader) ([]byte, bool) {
	content, err := io.ReadAll(io.LimitReader(r, maxDiffed+1))
	if err != nil || len(content) > maxDiffed || bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) || secret.IsPrivateKey(content[:min(len(content), secret.KeyHeadBytes)]) {
		return nil, false
	}
	return content, true
}
