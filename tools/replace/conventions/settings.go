package conventions

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// Settings are the format for a new file. Settings that no file gives are zero.
type Settings struct {
	Ending       string // "\n", "\r\n" or "\r"; "": not set
	EndingSource string // name of the file with the setting

	Encoding       textfile.Encoding // "": not set
	BOM            bool              // write a byte order mark
	EncodingSource string            // name of the file with the setting
	// UnknownEncoding describes a requested encoding that is not supported,
	// as a clause for a message; "": no such encoding.
	UnknownEncoding string

	FinalNewline bool // the file should end in a line ending
}

// settings returns the settings collected.
func (f *collector) settings() Settings {
	w := Settings{FinalNewline: f.editorProps["insert_final_newline"] == "true"}
	if ending, ok := map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"}[f.editorProps["end_of_line"]]; ok {
		w.Ending, w.EndingSource = ending, editorConfig
	} else if ending, ok := map[string]string{"lf": "\n", "crlf": "\r\n"}[f.gitAttrs["eol"]]; ok && f.gitAttrs["text"] != "false" {
		w.Ending, w.EndingSource = ending, gitAttributes
	}
	if charset := f.editorProps["charset"]; charset != "" && charset != "unset" {
		w.setEncoding(charset, editorConfig)
	} else if charset := f.gitAttrs["working-tree-encoding"]; charset != "" && f.gitAttrs["text"] != "false" {
		w.setEncoding(charset, gitAttributes)
	}
	return w
}

// setEncoding sets the encoding and BOM from a charset in the spelling of
// .editorconfig or .gitattributes, or UnknownEncoding. source is the name of
// the file.
func (w *Settings) setEncoding(charset, source string) {
	name, mark := strings.CutSuffix(strings.ToLower(charset), "-bom")
	encoding, err := textfile.ParseEncoding(name)
	if err != nil {
		w.UnknownEncoding = source + " sets " + pathname.Escape(charset)
		return
	}
	w.Encoding, w.EncodingSource = encoding, source
	// Without a byte order mark, UTF-16 cannot be detected reliably. An
	// encoding name in .gitattributes that gives the byte order (UTF-16LE)
	// means a file without a mark.
	w.BOM = mark || encoding.IsUTF16() && (source == editorConfig || name == "utf-16")
}
