package main

import (
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// textEditorArguments are arguments of Anthropic's text editor, a tool with
// several commands that view, create and edit files. The schema does not show
// them.
type textEditorArguments struct {
	Command    string  `json:"command,omitempty" hidden:"true"`
	FileText   *string `json:"file_text,omitempty" alias:"content" verbatim:"true" hidden:"true"`
	InsertLine *int64  `json:"insert_line,omitempty" hidden:"true"`
	InsertText *string `json:"insert_text,omitempty" verbatim:"true" hidden:"true"`
}

// translate sets Undo for the command undo_edit. It accepts str_replace, and returns an
// INVALID_PARAMS error that names the right tool or arguments for other commands of the
// text editor.
func (args *arguments) translate() error {
	switch {
	case args.Command == "insert" || args.InsertLine != nil || args.InsertText != nil:
		return toolerr.New(toolerr.InvalidParams,
			"edit has no insert: set old_string to the line before the new text, and new_string to that line followed by the new text")
	case args.Command == "create" || args.FileText != nil:
		return toolerr.New(toolerr.InvalidParams,
			"edit changes parts of a file: to write a whole file, use replace with file_path and content")
	case args.Command == "view":
		return toolerr.New(toolerr.InvalidParams, "edit changes files: to read one, use view with file_path, offset and limit")
	case args.Command == "undo_edit":
		args.Undo = true
	case args.Command != "" && args.Command != "str_replace":
		return toolerr.New(toolerr.InvalidParams,
			"edit has no command %s: give file_path, old_string and new_string", pathname.Escape(args.Command))
	}
	return nil
}
