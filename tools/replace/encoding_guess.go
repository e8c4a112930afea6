package main

import (
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// checkEncodingGuess returns BAD_ENCODING if the file's encoding is a guess and
// the content can only be written in it: programs that use another encoding
// could not read the content.
func (p *plan) checkEncodingGuess() error {
	if !p.target.guessed {
		return nil
	}
	guess := textfile.NewGuess(p.before.Content, p.target.encoding)
	known, text := string(p.oldText), p.text
	if p.before.Masked { // as shown to the caller
		known, text = maskValues(known), p.Content
	}
	if guess.TextIsUnambiguous(known, text) {
		return nil
	}
	return toolerr.New(toolerr.BadEncoding, "%s: the file's encoding is a guess (it may be %s), and content depends on it; nothing was written. View the file with encoding=… to find the right one, then call again with that encoding", p.before.Shown, guess).
		With("candidates", append([]textfile.Encoding{guess.Encoding}, guess.Rivals...))
}
