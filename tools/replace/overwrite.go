package main

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// checkOverwrite returns an error if the call would discard content that the
// caller has not seen: NOT_VIEWED, STALE or BINARY_FILE.
func (p *plan) checkOverwrite() error {
	b := p.before
	switch {
	case p.requireView && b.Exists && b.Seen == nil && p.Etag == "":
		return toolerr.New(toolerr.NotViewed, "%s exists but has not been viewed yet, nothing was written: view it first, then replace it (this server runs with --require-view)", b.Shown)
	case p.Overwrite:
		return nil
	case !b.Exists && p.Etag != "":
		return toolerr.New(toolerr.Stale, "%s does not exist, so etag=%s does not match; nothing was written. To create it, leave etag out.", b.Shown, p.Etag)
	case !b.Exists:
		return nil
	case p.Etag != "" && !b.Etag.Matches(p.Etag), p.Etag == "" && b.Seen != nil && !b.IsSeenVersion():
		return p.staleError()
	case p.oldFormat.Binary:
		return toolerr.New(toolerr.BinaryFile, "%s is a binary file (%d bytes), nothing was written: to replace it with text anyway, call again with overwrite=true", b.Shown, b.Stat.Size)
	}
	return nil
}

// staleError returns STALE for a file that changed, with the changes since the
// last view and how to continue.
func (p *plan) staleError() error {
	b := p.before
	if b.Masked {
		return toolerr.New(toolerr.Stale, "%s changed since you viewed it; nothing was written. View it again, or call again with overwrite=true, which discards that change.", b.Shown)
	}
	knownEtag := p.Etag
	if knownEtag == "" {
		knownEtag = b.Seen.Index.Etag.String()
	}
	what, when, then := "View it to see the current content.", "changed since you viewed it", "then"
	if b.Seen == nil || !b.Seen.Index.Etag.Matches(knownEtag) {
		when, then = "does not have the etag you gave", "given"
	}
	if b.Seen != nil && b.Seen.Index.Etag.Matches(knownEtag) {
		if d := b.DifferenceFromSeen(maxStaleDiffLines); d.Text != "" {
			what = fmt.Sprintf("Since you viewed it (+%d -%d lines):\n%s", d.Added, d.Removed, d.Text)
			if d.Cut > 0 {
				what += fmt.Sprintf("(%d more lines; view the file to see all)\n", d.Cut)
			}
			if d.Partial {
				what += "(only lines you viewed are compared; others may differ too)\n"
			}
		} else if d.Partial {
			what = "The change is not in the lines you viewed: view it to see the current content."
		}
	}
	return toolerr.New(toolerr.Stale, "%s %s: etag=%s %s, etag=%s now; nothing was written.\nTo continue, merge the change into content and call again with etag=%s, or discard it with overwrite=true.\n%s",
		b.Shown, when, knownEtag, then, b.Etag, b.Etag, strings.TrimSuffix(what, "\n")).With("etag", b.Etag.String())
}
