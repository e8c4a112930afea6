package main

import (
	"fmt"

	"github.com/toolroom-mcp/toolroom/internal/contentcheck"
	"github.com/toolroom-mcp/toolroom/internal/fileedit"
)

// addWarnings adds warnings about new text that seems to omit lines, and about
// syntax errors that the change introduces.
func (c *change) addWarnings(r request, b *fileedit.Before) {
	for i, e := range r.edits {
		warning := contentcheck.OmissionWarning(e.New, e.Old)
		if warning == "" {
			continue
		}
		if len(r.edits) > 1 {
			warning = fmt.Sprintf("edit %d: %s", i+1, warning)
		}
		c.warnings = append(c.warnings, warning)
	}
	if b.Masked || max(c.result.Size(), len(c.file.Text)) > maxSyntaxChecked { // a parser's message may quote a value
		return
	}
	before := c.file.Text
	if !b.Exists {
		before = nil
	}
	if warning := contentcheck.SyntaxWarning(b.Shown, before, applyChanges(c.file.Text, c.result.Changes)); warning != "" {
		c.warnings = append(c.warnings, warning)
	}
}

// maxSyntaxChecked bounds the files whose syntax is checked, in bytes.
const maxSyntaxChecked = 1 << 20
