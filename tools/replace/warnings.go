package main

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/contentcheck"
	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// judge adds warnings about content that is probably not intended.
func (p *plan) judge(done *fileedit.Outcome) {
	b := p.before
	if before := p.oldLines; b.Exists && !p.old.Binary && done.Index.Lines*2 < before {
		p.warn("the file now has %s and had %d: if content was only part of the file, undo and use edit", textfmt.Count(done.Index.Lines, "line"), before)
	}
	if n := literalNewlines(p.Content); n > 0 {
		p.warn(`content has no line break, but a backslash followed by n %d times: in JSON a line break is \n with one backslash`, n)
	}
	if len(p.Content) <= maxJudged && !b.Masked {
		if warning := contentcheck.Omission(p.Content, ""); warning != "" {
			// An omission marker that the old file has too is not a
			// mistake.
			if warning = contentcheck.Omission(p.Content, string(p.oldText)); warning != "" {
				p.warn("%s", warning)
			}
		}
	}
	looks := done.Index.Format
	if p.form.encoding != textfile.UTF8 && done.After.Size() <= maxJudged {
		looks = textfile.Detect(done.After.Bytes())
	}
	switch {
	case looks.Binary:
		p.warn("content has control characters that make the file binary: view will not show it")
	case looks.Encoding != p.form.encoding && looks.Encoding != textfile.UTF8:
		p.warn("the file is written as %s, but looks like %s; give view the encoding", p.form.encoding, looks.Encoding)
	}
}

// maxJudged bounds the content checked for mistakes that models make, in bytes.
// A model does not write longer content.
const maxJudged = 1 << 20

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
