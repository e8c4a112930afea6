package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
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

// dominant returns the ending of most lines, or "" if the text has no line
// breaks.
func dominant(text []byte) string {
	lf, crlf, cr := bytes.Count(text, []byte("\n")), bytes.Count(text, []byte("\r\n")), bytes.Count(text, []byte("\r"))
	switch {
	case lf == 0 && cr > 0:
		return "\r"
	case lf == 0:
		return ""
	case crlf*2 > lf:
		return "\r\n"
	}
	return "\n"
}

func nameOf(ending string) string {
	return map[string]string{"\n": "lf", "\r\n": "crlf", "\r": "cr"}[ending]
}

// endings returns content with the line endings of the form.
func (p *plan) endings(content string) string {
	if p.form.ending == "" || content == "" {
		return content
	}
	returns := strings.Count(content, "\r\n")
	if returns > 0 {
		if p.form.ending == "\r\n" && returns == strings.Count(content, "\n") {
			return content
		}
		if p.form.ending != "\r\n" {
			p.note("%s of content ended in crlf and were written with %s, as %s", textfmt.Count(int64(returns), "line"), nameOf(p.form.ending), p.like())
		}
		content = strings.ReplaceAll(content, "\r\n", "\n")
	}
	if p.form.ending == "\n" {
		return content
	}
	return strings.ReplaceAll(content, "\n", p.form.ending)
}

// like says why the line endings were chosen, for a note.
func (p *plan) like() string {
	if p.before.Exists && len(p.before.Content) > 0 {
		return "in the rest of the file"
	}
	return "the directory's settings say"
}

// readOld detects the format of the existing file and decodes it.
func (p *plan) readOld(ctx context.Context) error {
	raw := p.before.Content
	p.old = textfile.Detect(raw)
	if p.before.Fresh() && !p.old.Binary && p.before.Seen.Index.Encoding != "" {
		p.old = p.before.Seen.Index.Format // as it was written, even if detection would differ
	}
	named := textfile.Encoding("")
	if toldBefore := p.before.Fresh() && p.before.Seen.NamedEncoding != ""; !toldBefore && p.Encoding != string(textfile.UTF8) {
		named = textfile.Encoding(p.Encoding)
	}
	if p.old.Guessed || p.old.Binary || named == "" { // otherwise the call converts the file
		index, told, err := p.before.Read(ctx, named)
		if err != nil {
			return err
		}
		if p.told = told; told {
			p.old = index.Format
		}
	}
	p.oldText = raw[p.old.BOM:]
	if p.old.Encoding != textfile.UTF8 && !p.old.Binary {
		p.oldText = []byte(p.old.Encoding.Decode(p.oldText))
	}
	if len(p.oldText) == 0 {
		return nil
	}
	ending := []byte("\n")
	if p.old.Ending == textfile.CR {
		ending = []byte("\r")
	}
	p.oldLines = int64(bytes.Count(p.oldText, ending))
	if !bytes.HasSuffix(p.oldText, ending) {
		p.oldLines++
	}
	return nil
}

// literalNewlines counts \n sequences in content without line breaks, which
// were probably escaped twice. It returns 0 if there are only a few.
func literalNewlines(content string) int {
	const many = 3
	if strings.Contains(content, "\n") {
		return 0
	}
	if n := strings.Count(content, `\n`); n >= many {
		return n
	}
	return 0
}
