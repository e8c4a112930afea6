// Package conventions determines the format for a new file from the
// .editorconfig and .gitattributes files of its directory and the parent
// directories within the roots.
//
// .editorconfig is read as editorconfig.org describes it (charset, end_of_line,
// insert_final_newline), .gitattributes as gitattributes(5) does (eol, text,
// binary, working-tree-encoding; without macro definitions and core.autocrlf).
// If both give a setting, .editorconfig wins, because an editor would have
// followed it.
package conventions

import (
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Wanted is the format for a file; settings that no file gives are zero.
type Wanted struct {
	Ending     string // "\n", "\r\n" or "\r"
	EndingFrom string // name of the file with the setting

	Encoding     textfile.Encoding
	BOM          bool
	EncodingFrom string
	// Unknown describes a requested encoding that is not supported, as a
	// clause for a message; "": none.
	Unknown string

	FinalNewline bool
}

const (
	editorConfig  = ".editorconfig"
	gitAttributes = ".gitattributes"

	// maxDepth bounds the directories searched, maxFile the bytes read of a
	// file.
	maxDepth = 64
	maxFile  = 256 << 10
)

// For returns the format for a new file at an absolute path. Files that cannot
// be read are ignored.
func For(fsys *sandbox.FS, path string) Wanted {
	var f finder
	dir, below := filepath.Dir(path), filepath.Base(path)
	for range maxDepth {
		if !f.look(fsys, dir, filepath.ToSlash(below)) {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		below = filepath.Join(filepath.Base(dir), below)
		dir = parent
	}
	return f.wanted()
}

// finder collects settings from the nearest directory upwards. A setting that
// is present is not replaced.
type finder struct {
	editor, git         map[string]string
	editorDone, gitDone bool // directories further up do not count
}

// look reads the files of dir; below is the new file's path relative to dir. It
// returns false if the directories above do not count, or are outside the
// roots.
func (f *finder) look(fsys *sandbox.FS, dir, below string) bool {
	d, err := fsys.Quiet().OpenDir(dir)
	if err != nil {
		return toolerr.Is(err, toolerr.NotFound) // the directory does not exist yet
	}
	defer d.Close()
	if !f.editorDone {
		if text, ok := read(d, editorConfig); ok {
			var set map[string]string
			set, f.editorDone = parseEditorConfig(text, below)
			f.editor = merge(f.editor, set)
		}
	}
	if !f.gitDone {
		if text, ok := read(d, gitAttributes); ok {
			f.git = merge(f.git, parseAttributes(text, below))
		}
		if _, err := d.Lstat(".git"); err == nil {
			f.gitDone = true
			f.git = merge(infoAttributes(fsys, dir, below), f.git)
		}
	}
	return !f.editorDone || !f.gitDone
}

// infoAttributes reads the repository's info/attributes, which takes precedence
// over all .gitattributes files.
func infoAttributes(fsys *sandbox.FS, dir, below string) map[string]string {
	d, err := fsys.Quiet().OpenDir(filepath.Join(dir, ".git", "info"))
	if err != nil {
		return nil
	}
	defer d.Close()
	text, _ := read(d, "attributes")
	return parseAttributes(text, below)
}

func read(d *sandbox.Dir, name string) (string, bool) {
	text, _, err := d.ReadFile(name, nil, maxFile)
	return strings.TrimPrefix(string(text), "\ufeff"), err == nil
}

// merge adds the entries of more that set does not have, and returns set.
func merge(set, more map[string]string) map[string]string {
	if set == nil {
		set = map[string]string{}
	}
	for name, value := range more {
		if _, ok := set[name]; !ok {
			set[name] = value
		}
	}
	return set
}

func (f *finder) wanted() Wanted {
	w := Wanted{FinalNewline: f.editor["insert_final_newline"] == "true"}
	if ending, ok := map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"}[f.editor["end_of_line"]]; ok {
		w.Ending, w.EndingFrom = ending, editorConfig
	} else if ending, ok := map[string]string{"lf": "\n", "crlf": "\r\n"}[f.git["eol"]]; ok && f.git["text"] != "false" {
		w.Ending, w.EndingFrom = ending, gitAttributes
	}
	if charset := f.editor["charset"]; charset != "" && charset != "unset" {
		w.encoding(charset, editorConfig)
	} else if charset := f.git["working-tree-encoding"]; charset != "" && f.git["text"] != "false" {
		w.encoding(charset, gitAttributes)
	}
	return w
}

// encoding sets the encoding from a charset in the spelling of either file.
func (w *Wanted) encoding(charset, from string) {
	name, mark := strings.CutSuffix(strings.ToLower(charset), "-bom")
	encoding, err := textfile.ParseEncoding(name)
	if err != nil {
		w.Unknown = from + " sets " + pathname.Escape(charset)
		return
	}
	w.Encoding, w.EncodingFrom = encoding, from
	// Without a byte order mark, UTF-16 cannot be detected reliably. An
	// encoding name in .gitattributes that gives the byte order (UTF-16LE)
	// means a file without a mark.
	w.BOM = mark || encoding.Wide() && (from == editorConfig || name == "utf-16")
}
