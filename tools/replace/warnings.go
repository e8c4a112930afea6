package main

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/contentcheck"
	"github.com/toolroom-mcp/toolroom/internal/fileedit"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// addContentWarnings adds warnings about content that is probably not intended.
func (p *plan) addContentWarnings(done *fileedit.Outcome) {
	b := p.before
	if before := p.oldLines; b.Exists && !p.oldFormat.Binary && done.Index.Lines*2 < before {
		format := "content has %s, and the file had %d: if content is only part of the file, undo and use edit"
		if p.DryRun {
			format = "content has %s, and the file has %d: if content is only part of the file, use edit"
		}
		p.addWarning(format, textfmt.Count(done.Index.Lines, "line"), before)
	}
	if n := countLiteralNewlines(p.Content); n > 0 {
		p.addWarning(`content has no line break, but a backslash followed by n %d times: in JSON a line break is \n with one backslash`, n)
	}
	if len(p.Content) <= maxChecked && !b.Masked {
		if warning := contentcheck.OmissionWarning(p.Content, ""); warning != "" {
			// An omission marker that the old file has too is not a
			// mistake.
			if warning = contentcheck.OmissionWarning(p.Content, string(p.oldText)); warning != "" {
				p.addWarning("%s", warning)
			}
		}
	}
	detected := done.Index.Format
	if p.target.encoding != textfile.UTF8 && done.After.Size() <= maxChecked {
		detected = textfile.Detect(done.After.Bytes())
	}
	switch {
	case detected.Binary:
		p.addWarning("content has control characters that make the file binary: view will not show it")
	case detected.Encoding != p.target.encoding && detected.Encoding != textfile.UTF8:
		p.addWarning("the file is written as %s, but looks like %s; give view the encoding", p.target.encoding, detected.Encoding)
	}
}

// maxChecked bounds the content that is checked for mistakes of models, in
// bytes. A model does not write longer content.
const maxChecked = 1 << 20

// countLiteralNewlines counts the \n sequences in content without line breaks,
// which were probably escaped twice. It returns 0 if there are only a few.
func countLiteralNewlines(content string) int {
	const many = 3
	if strings.Contains(content, "\n") {
		return 0
	}
	if n := strings.Count(content, `\n`); n >= many {
		return n
	}
	return 0
}
