// Package conventions finds out how a new file is to be written, by the
// .editorconfig and .gitattributes of its directory and those above it, within
// the roots.
//
// .editorconfig is read as editorconfig.org describes it (charset, end_of_line,
// insert_final_newline), .gitattributes as gitattributes(5) does (eol, text,
// binary, working-tree-encoding; no macros of its own, no core.autocrlf).
// Where both say something, .editorconfig has the word: it is what an editor
// would have followed.
package conventions

import (
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Wanted is how a file is to be written; what nobody asks for is zero.
type Wanted struct {
	Ending     string // "\n", "\r\n" or "\r"
	EndingFrom string // the name of the file that says so

	Encoding     textfile.Encoding
	BOM          bool
	EncodingFrom string
	// Unknown is an encoding that is asked for and not known, as a sentence.
	Unknown string

	FinalNewline bool
}

const (
	editorConfig  = ".editorconfig"
	gitAttributes = ".gitattributes"

	// maxDepth bounds the directories looked at, maxFile what is read of one.
	maxDepth = 64
	maxFile  = 256 << 10
)

// For returns how the file at an absolute path is to be written. What cannot
// be read asks for nothing.
func For(fs *sandbox.FS, path string) Wanted {
	var f finder
	dir, below := filepath.Dir(path), filepath.Base(path)
	for range maxDepth {
		if !f.look(fs, dir, filepath.ToSlash(below)) {
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

// finder gathers what the directories say, the nearest first: what is set
// stays.
type finder struct {
	editor, git         map[string]string
	editorDone, gitDone bool // what is above has no say
}

// look reads the files of a directory; below is the path of the file in it.
// It is false where nothing above has a say, or where the roots end.
func (f *finder) look(fs *sandbox.FS, dir, below string) bool {
	d, err := fs.Quiet().OpenDir(dir)
	if err != nil {
		return toolerr.Is(err, toolerr.NotFound) // not made yet
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
			f.git = merge(infoAttributes(fs, dir, below), f.git)
		}
	}
	return !f.editorDone || !f.gitDone
}

// infoAttributes reads the repository's own attributes, which go before all.
func infoAttributes(fs *sandbox.FS, dir, below string) map[string]string {
	d, err := fs.Quiet().OpenDir(filepath.Join(dir, ".git", "info"))
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

// merge adds to set what it does not have.
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

// encoding takes a charset as either file spells it.
func (w *Wanted) encoding(charset, from string) {
	name, mark := strings.CutSuffix(strings.ToLower(charset), "-bom")
	encoding, err := textfile.ParseEncoding(name)
	if err != nil {
		w.Unknown = from + " sets " + sandbox.EscapeName(charset)
		return
	}
	w.Encoding, w.EncodingFrom = encoding, from
	// UTF-16 is not told from other bytes without a mark; git's names that
	// say which one it is have none.
	w.BOM = mark || encoding.Wide() && (from == editorConfig || name == "utf-16")
}
