package main

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/replace/conventions"
)

// form describes how text is written as bytes.
type form struct {
	encoding textfile.Encoding
	guessed  bool // encoding is a guess
	bom      bool
	ending   string // line ending; "" keeps the given line endings
	why      string // reason for the encoding, for error messages
}

// byteOrderMark is the byte order mark as a character.
const byteOrderMark = "\ufeff"

// encode returns text as bytes. The text has its final line endings already.
func (f form) encode(text string) ([]byte, error) {
	if f.bom {
		text = byteOrderMark + text
	}
	if f.encoding == textfile.UTF8 {
		return []byte(text), nil
	}
	return f.encoding.Encode(text)
}

// chooseForm sets the form and text of the new content. An existing file keeps
// its form; a new file follows the conventions of its directory.
func (p *plan) chooseForm(fsys *sandbox.FS, content string) {
	b := p.before
	if b.Exists && !p.old.Binary && len(b.Content) > p.old.BOM {
		p.form = form{
			encoding: p.old.Encoding, guessed: p.old.Guessed, bom: p.old.BOM > 0, ending: dominant(p.oldText),
			why: fmt.Sprintf("the file keeps its encoding %s: use characters that it has, or convert the file first", p.old.Encoding),
		}
		if p.form.guessed {
			p.form.why = "the file's encoding is a guess: view the file with encoding=… to find the right one, then call again with that encoding"
		}
	} else {
		p.newForm(fsys)
	}
	if e := textfile.Encoding(p.Encoding); e != "" && e != p.form.encoding {
		p.form.encoding, p.form.guessed, p.form.bom = e, false, e.Wide()
		p.form.why = fmt.Sprintf("encoding is %s", e)
		if p.old.Encoding != "" && len(p.oldText) > 0 {
			p.note("converted from %s to %s", p.old.Encoding, e)
		}
	}
	if rest, ok := strings.CutPrefix(content, byteOrderMark); ok && (p.form.bom || b.Exists && len(b.Content) > 0) {
		if !p.form.bom {
			p.note("the byte order mark of content was removed, because the file has none")
		}
		content = rest
	}
	p.text = p.endings(content)
}

// newForm sets the form for a file that does not exist or has no text.
func (p *plan) newForm(fsys *sandbox.FS) {
	wanted := conventions.For(fsys, p.before.Path)
	p.form = form{encoding: textfile.UTF8, ending: wanted.Ending, bom: wanted.BOM}
	if p.old.BOM > 0 { // the file has only a byte order mark
		p.form.encoding, p.form.bom = p.old.Encoding, true
	} else if wanted.Encoding != "" {
		p.form.encoding = wanted.Encoding
		p.form.why = fmt.Sprintf("%s sets %s", wanted.EncodingFrom, wanted.Encoding)
		if wanted.BOM {
			p.note("written as %s with a byte order mark (from %s)", wanted.Encoding, wanted.EncodingFrom)
		} else if wanted.Encoding != textfile.UTF8 {
			p.note("written as %s (from %s)", wanted.Encoding, wanted.EncodingFrom)
		}
	}
	if wanted.Unknown != "" {
		p.note("%s, an unknown encoding, so the file is written as %s", wanted.Unknown, p.form.encoding)
	}
	if wanted.Ending != "" && wanted.Ending != "\n" {
		p.note("lines end in %s (from %s)", nameOf(wanted.Ending), wanted.EndingFrom)
	}
	if wanted.FinalNewline && p.Content != "" && !strings.HasSuffix(p.Content, "\n") {
		p.note(".editorconfig sets insert_final_newline, but content has no final newline; none was added")
	}
}
