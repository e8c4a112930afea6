package main

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/replace/conventions"
)

// byteFormat is the format in which text is written as bytes.
type byteFormat struct {
	encoding textfile.Encoding
	guessed  bool   // the encoding is a guess
	bom      bool   // with a byte order mark
	ending   string // line ending; "": the text's own line endings are kept
	reason   string // why the encoding was chosen, for error messages
}

// byteOrderMark is the byte order mark as a character.
const byteOrderMark = "\ufeff"

// encode returns text as bytes, with a byte order mark if the format has one.
// It does not convert line endings. It returns BAD_ENCODING for text that the
// encoding cannot represent.
func (f byteFormat) encode(text string) ([]byte, error) {
	if f.bom {
		text = byteOrderMark + text
	}
	if f.encoding == textfile.UTF8 {
		return []byte(text), nil
	}
	return f.encoding.Encode(text)
}

// chooseFormat sets the target format and converts content to p.text. An
// existing file keeps its format; a new file follows the conventions of its
// directory.
func (p *plan) chooseFormat(fsys *sandbox.FS, content string) {
	b := p.before
	if b.Exists && !p.oldFormat.Binary && len(b.Content) > p.oldFormat.BOM {
		p.target = byteFormat{
			encoding: p.oldFormat.Encoding, guessed: p.oldFormat.Guessed, bom: p.oldFormat.BOM > 0, ending: majorityEnding(p.oldText),
			reason: fmt.Sprintf("the file keeps its encoding %s: use characters that it has, or convert the file first", p.oldFormat.Encoding),
		}
		if p.target.guessed {
			p.target.reason = "the file's encoding is a guess: view the file with encoding=… to find the right one, then call again with that encoding"
		}
	} else {
		p.chooseNewFileFormat(fsys)
	}
	if e := textfile.Encoding(p.Encoding); e != "" && e != p.target.encoding {
		p.target.encoding, p.target.guessed, p.target.bom = e, false, e.IsUTF16()
		p.target.reason = "use characters that it has, or another encoding, such as utf-8"
		if p.oldFormat.Encoding != "" && len(p.oldText) > 0 {
			p.addNote("converted from %s to %s", p.oldFormat.Encoding, e)
		}
	}
	if rest, ok := strings.CutPrefix(content, byteOrderMark); ok && (p.target.bom || b.Exists && len(b.Content) > 0) {
		if !p.target.bom {
			p.addNote("the byte order mark of content was removed, because the file has none")
		}
		content = rest
	}
	p.text = p.convertEndings(content)
}

// chooseNewFileFormat sets the target format for a file that does not exist or
// has no text, and adds notes about it.
func (p *plan) chooseNewFileFormat(fsys *sandbox.FS) {
	wanted := conventions.ForNewFile(fsys, p.before.Path)
	p.target = byteFormat{encoding: textfile.UTF8, ending: wanted.Ending, bom: wanted.BOM}
	if p.oldFormat.BOM > 0 { // the file has only a byte order mark
		p.target.encoding, p.target.bom = p.oldFormat.Encoding, true
	} else if wanted.Encoding != "" {
		p.target.encoding = wanted.Encoding
		p.target.reason = fmt.Sprintf("%s sets %s", wanted.EncodingSource, wanted.Encoding)
		if wanted.BOM {
			p.addNote("written as %s with a byte order mark (from %s)", wanted.Encoding, wanted.EncodingSource)
		} else if wanted.Encoding != textfile.UTF8 {
			p.addNote("written as %s (from %s)", wanted.Encoding, wanted.EncodingSource)
		}
	}
	if wanted.UnknownEncoding != "" {
		p.addNote("%s, an unknown encoding, so the file is written as %s", wanted.UnknownEncoding, p.target.encoding)
	}
	if wanted.Ending != "" && wanted.Ending != "\n" {
		p.addNote("lines end in %s (from %s)", endingName(wanted.Ending), wanted.EndingSource)
	}
	if wanted.FinalNewline && p.Content != "" && !strings.HasSuffix(p.Content, "\n") {
		p.addNote(".editorconfig sets insert_final_newline, but content has no final newline; none was added")
	}
}
