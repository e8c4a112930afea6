package main

import (
	"bytes"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// majorityEnding returns the line ending of most lines; "" if the text has no
// line breaks.
func majorityEnding(text []byte) string {
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

// endingName returns lf, crlf or cr; "" for "".
func endingName(ending string) string {
	return map[string]string{"\n": "lf", "\r\n": "crlf", "\r": "cr"}[ending]
}

// convertEndings returns content with the line endings of the target format,
// and adds a note if that changes crlf to another ending.
func (p *plan) convertEndings(content string) string {
	if p.target.ending == "" || content == "" {
		return content
	}
	returns := strings.Count(content, "\r\n")
	if returns > 0 {
		if p.target.ending == "\r\n" && returns == strings.Count(content, "\n") {
			return content
		}
		if p.target.ending != "\r\n" {
			p.addNote("%s of content ended in crlf and were written with %s, as %s", textfmt.Count(int64(returns), "line"), endingName(p.target.ending), p.endingReason())
		}
		content = strings.ReplaceAll(content, "\r\n", "\n")
	}
	if p.target.ending == "\n" {
		return content
	}
	return strings.ReplaceAll(content, "\n", p.target.ending)
}

// endingReason says why the line endings were chosen, for a note.
func (p *plan) endingReason() string {
	if p.before.Exists && len(p.before.Content) > 0 {
		return "in the rest of the file"
	}
	return "the directory's settings say"
}
