package main

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
)

// arguments are the arguments of a call.
type arguments struct {
	FilePath             string          `json:"file_path" alias:"@file"`
	OldString            *string         `json:"old_string,omitempty" alias:"@old" verbatim:"true"`
	NewString            *string         `json:"new_string,omitempty" alias:"@new" verbatim:"true" jsonschema:"replacement; empty deletes"`
	ReplaceAll           bool            `json:"replace_all,omitempty" alias:"allow_multiple,all_occurrences" default:"false"`
	ExpectedReplacements int             `json:"expected_replacements,omitempty" min:"1" jsonschema:"replace all matches; fail unless there are this many"`
	Edits                []editArguments `json:"edits,omitempty" alias:"replacements,changes"`
	DryRun               bool            `json:"dry_run,omitempty" default:"false"`
	Etag                 string          `json:"etag,omitempty" jsonschema:"from view; fail if edited lines changed"`
	Encoding             string          `json:"encoding,omitempty"`
	Strict               bool            `json:"strict,omitempty" default:"false" jsonschema:"exact match, except line endings"`
	Undo                 bool            `json:"undo,omitempty" default:"false" jsonschema:"revert the last change by edit or replace"`
	textEditorArguments
}

// editArguments is an element of the argument edits.
type editArguments struct {
	OldString  string `json:"old_string" alias:"@old" verbatim:"true"`
	NewString  string `json:"new_string" alias:"@new" verbatim:"true"`
	ReplaceAll bool   `json:"replace_all,omitempty" alias:"allow_multiple,all_occurrences" default:"false"`
}

// request is a validated call.
type request struct {
	path   string       // file_path as given
	edits  []match.Edit // what to replace; a single edit with an empty Old creates the file
	dryRun bool
	etag   string // 8 to 16 hex digits; "": not given
	strict bool   // match exactly, except for line endings
	undo   bool   // revert the last change; edits is empty then

	encoding textfile.Encoding // the file's encoding as the caller gave it; "": not given
}

// createsFile reports whether the call creates a file.
func (r request) createsFile() bool { return len(r.edits) == 1 && r.edits[0].Old == "" }

// etagPattern matches an etag, complete or shortened as view shows it.
var etagPattern = lazyregexp.New(`^[0-9a-f]{8,16}$`)

// newRequest returns the request for a call's arguments, or MISSING_PARAMETER,
// INVALID_PARAMS (also for arguments that cannot be combined) or BAD_ENCODING.
func newRequest(args arguments) (request, error) {
	r := request{path: args.FilePath, dryRun: args.DryRun, strict: args.Strict, undo: args.Undo}
	r.etag = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(args.Etag), "etag="))
	if args.Encoding != "" {
		e, err := textfile.ParseEncoding(args.Encoding)
		if err != nil {
			return r, toolerr.New(toolerr.BadEncoding, "encoding: %w", err)
		}
		r.encoding = e
	}
	given := func(s *string) bool { return s != nil && (*s != "" || len(args.Edits) == 0 && !args.Undo) }
	single := given(args.OldString) || given(args.NewString)
	switch {
	case r.path == "":
		return r, toolerr.New(toolerr.MissingParameter, "file_path is empty: name the file to edit")
	case r.etag != "" && !etagPattern().MatchString(r.etag):
		return r, toolerr.New(toolerr.InvalidParams, "invalid etag %q: give 8 to 16 hex digits, as in the first line of view's output, or leave it out", truncate(args.Etag, 40))
	case r.undo && (single || len(args.Edits) > 0):
		return r, toolerr.New(toolerr.InvalidParams, "undo cannot be combined with an edit: leave out undo, or old_string, new_string and edits")
	case r.undo:
		return r, nil
	case len(args.Edits) > 0 && single:
		return r, toolerr.New(toolerr.InvalidParams, "edits cannot be combined with old_string and new_string: put all changes into edits")
	case len(args.Edits) > maxEdits:
		return r, toolerr.New(toolerr.InvalidParams, "edits has %d items: one call takes at most %d", len(args.Edits), maxEdits)
	case len(args.Edits) > 0 && (args.ReplaceAll || args.ExpectedReplacements > 0):
		return r, toolerr.New(toolerr.InvalidParams, "replace_all and expected_replacements apply to old_string: set replace_all in the items of edits")
	case len(args.Edits) > 0:
		for i, e := range args.Edits {
			if e.OldString == "" && len(args.Edits) > 1 {
				return r, toolerr.New(toolerr.InvalidParams, "/edits/%d/old_string is empty: that creates a file and cannot be one of several edits", i)
			}
			r.edits = append(r.edits, match.Edit{Old: e.OldString, New: e.NewString, All: e.ReplaceAll})
		}
		return r, nil
	case args.OldString == nil && args.NewString == nil:
		return r, toolerr.New(toolerr.MissingParameter, "old_string and new_string are missing: give both, or edits, or undo=true")
	case args.OldString == nil:
		return r, toolerr.New(toolerr.MissingParameter, "old_string is missing: give the text to replace (empty creates a file)")
	case args.NewString == nil:
		return r, toolerr.New(toolerr.MissingParameter, "new_string is missing: give the replacement (empty deletes old_string)")
	}
	r.edits = []match.Edit{{Old: *args.OldString, New: *args.NewString, All: args.ReplaceAll, Expected: args.ExpectedReplacements}}
	return r, nil
}

// truncate returns text, cut to maxRunes characters and an ellipsis if it is
// longer.
func truncate(text string, maxRunes int) string {
	runes := []rune(text)
	if len(runes) <= maxRunes {
		return text
	}
	return string(runes[:maxRunes]) + "…"
}
