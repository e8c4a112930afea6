package main

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// arguments are the arguments of a call.
type arguments struct {
	FilePath  string `json:"file_path" alias:"@file"`
	Content   string `json:"content" alias:"file_text,contents,text,file_content,new_content,file_contents" verbatim:"true"`
	Etag      string `json:"etag,omitempty" jsonschema:"from view; fail if the file changed"`
	Encoding  string `json:"encoding,omitempty"`
	Overwrite bool   `json:"overwrite,omitempty" default:"false"`
	DryRun    bool   `json:"dry_run,omitempty" default:"false"`
	Command   string `json:"command,omitempty" hidden:"true"` // argument of Anthropic's text editor tool
}

// normalize validates the arguments, and converts Etag and Encoding to their usual
// form. It returns INVALID_PARAMS, MISSING_PARAMETER, BAD_ENCODING or TOO_LARGE.
func (a *arguments) normalize() error {
	a.Etag = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(a.Etag), "etag="))
	switch {
	case a.Command != "" && a.Command != "create":
		return toolerr.New(toolerr.InvalidParams, "replace writes a whole file: for command %s use edit or view", pathname.Escape(a.Command))
	case a.FilePath == "":
		return toolerr.New(toolerr.MissingParameter, "file_path is empty: name the file to write")
	case a.Etag != "" && !etagPattern().MatchString(a.Etag):
		return toolerr.New(toolerr.InvalidParams, "invalid etag: give 8 to 16 hex digits, as in the first line of view's output, or leave it out")
	case a.Encoding != "":
		e, err := textfile.ParseEncoding(a.Encoding)
		if err != nil {
			return toolerr.New(toolerr.BadEncoding, "encoding: %w", err)
		}
		a.Encoding = string(e)
	}
	if len(a.Content) > fileedit.MaxSize {
		return toolerr.New(toolerr.TooLarge, "content has %d bytes, more than the limit of %d (100 MiB); split it into several files", len(a.Content), fileedit.MaxSize)
	}
	return nil
}

// etagPattern matches an etag, complete or shortened as view shows it.
var etagPattern = lazyregexp.New(`^[0-9a-f]{8,16}$`)
