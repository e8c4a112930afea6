package main

import "github.com/toolroom-mcp/toolroom/internal/fileedit"

// meta is the metadata of a result.
type meta struct {
	Replacements int      `json:"replacements" jsonschema:"replacements made"`
	Steps        []string `json:"steps,omitempty" jsonschema:"for each edit, the difference ignored to match it; missing: all matched exactly"`
	Lines        []int    `json:"lines,omitempty" jsonschema:"lines in the old file where the first replacements begin"`
	Etag         string   `json:"etag,omitempty" jsonschema:"hash of the new content"`
	Size         int64    `json:"size" jsonschema:"bytes of the new content"`
	Added        int      `json:"added" jsonschema:"lines"`
	Removed      int      `json:"removed" jsonschema:"lines"`
	Created      bool     `json:"created,omitempty" jsonschema:"there was no file before"`
	Deleted      bool     `json:"deleted,omitempty" jsonschema:"undo removed the file that an edit had created"`
	Undone       bool     `json:"undone,omitempty" jsonschema:"an edit was undone"`
	DryRun       bool     `json:"dry_run,omitempty" jsonschema:"nothing was written"`
	Warnings     int      `json:"warnings,omitempty" jsonschema:"warnings in the text"`
}

// newMeta returns the metadata that edits and undo have in common.
func newMeta(done *fileedit.Outcome) meta {
	m := meta{Created: done.Created, Deleted: done.Removed && !done.DryRun, DryRun: done.DryRun, Size: done.Index.Size}
	etag := done.Etag()
	if done.DryRun {
		m.Size, etag = int64(len(done.Before.Content)), done.Before.Etag
	}
	if !done.Before.Masked && (!done.DryRun || done.Before.Exists) && !m.Deleted { // a hash would allow testing guesses of a value
		m.Etag = etag.String()
	}
	return m
}

// describeEtag returns the end of an answer's first line: the etag, or the
// reason for not having one.
func describeEtag(done *fileedit.Outcome) string {
	switch m := newMeta(done); {
	case done.Before.Masked:
		return "values masked"
	case m.Etag == "":
		return "no etag"
	case done.DryRun:
		return "etag=" + m.Etag + " (unchanged)"
	default:
		return "etag=" + m.Etag
	}
}
