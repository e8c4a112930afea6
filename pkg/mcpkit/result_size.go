package mcpkit

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// envelopeSize is the part of MaxMessage reserved for the JSON-RPC message
// around a result: id, metadata and so on.
const envelopeSize = 4 << 10

// minEncodedSize returns a lower bound of the encoded result's size in bytes.
func (r *CallResult) minEncodedSize() int {
	size := len(r.Text) + len(r.Notes) + len(r.Structured) + len(r.Details) + 192
	for _, image := range r.Images {
		size += image.encodedSize()
	}
	return size
}

// encodedSize returns about the size of the image in an encoded result, in
// bytes.
func (i Image) encodedSize() int {
	return base64.StdEncoding.EncodedLen(len(i.Data)) + len(i.MIME) + 64
}

// dropImagesOver omits the last images so that the encoded result has at most
// maxSize bytes, and adds a line to the text for each, at most maxLines lines.
func (r *CallResult) dropImagesOver(maxSize int) {
	const maxLines = 20
	all := r.Images
	bare := *r
	bare.Images = nil
	// The encoded text, and the lines that are added to it below.
	size := len(bare.encode()) + (maxLines+1)*128
	for i, image := range all {
		if size += image.encodedSize(); size > maxSize {
			r.Images = all[:i]
			break
		}
	}
	omitted := all[len(r.Images):]
	for i, image := range omitted {
		if i == maxLines {
			r.Text += fmt.Sprintf("\n%d more images omitted", len(omitted)-maxLines)
			break
		}
		r.Text += fmt.Sprintf("\nimage %d (%s, %d bytes) omitted: the message would exceed %d bytes",
			len(r.Images)+i+1, printable(image.MIME), len(image.Data), MaxMessage)
	}
}

// dropStructuredRows reduces the structuredContent of a text tool to its text,
// without rows and metadata. It does nothing for other results.
func (r *CallResult) dropStructuredRows() {
	if r.isStructuredAnswer {
		r.Rows = nil
		r.Structured = structuredAnswer(r, nil)
	}
}

// cutToLimit cuts text to at most about limit bytes, as a last resort, and says
// so in a last line. It cuts at the end of a line, or between characters if the
// first line is too long.
func cutToLimit(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const form = "[cut to the result limit: %d of %d bytes shown; ask for less, or for the next part]"
	maxKept := max(limit-len(form)-20, 0)
	kept := cutAtRune(text, maxKept)
	if i := strings.LastIndexByte(kept, '\n'); i > 0 {
		kept = kept[:i]
	}
	lastLine := fmt.Sprintf(form, len(kept), len(text))
	if kept == "" {
		return lastLine
	}
	return kept + "\n" + lastLine
}

// cutAtRune returns at most n bytes of text, without splitting a character.
func cutAtRune(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
