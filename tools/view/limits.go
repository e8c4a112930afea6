package main

import "time"

// Limits and defaults that callers meet. The tag of arguments.Limit repeats
// defaultLines.
const (
	// defaultLines, defaultPages and defaultDumpBytes are the lines of a text, the
	// pages of a PDF and the bytes of a hex dump shown without a limit.
	defaultLines     = 2000
	defaultPages     = 20
	defaultDumpBytes = 4096

	// maxTokens bounds an answer.
	maxTokens = 20_000
	// maxPaths bounds the files of a call.
	maxPaths = 100
	// maxConcurrent bounds the memory of concurrent calls.
	maxConcurrent = 8
	// deadline bounds a call. It is far longer than the largest file on a
	// slow disk takes.
	deadline = 2 * time.Minute
	// pdfDeadline bounds the reading of a PDF.
	pdfDeadline = 20 * time.Second

	// maxImageSide and maxImageBytes bound the sent image: vision models
	// accept this side without further scaling, and the data fits into a
	// message after base64 encoding.
	maxImageSide  = 1568
	maxImageBytes = 700 << 10
	// maxImageFile and maxDecodedBytes bound the file and the decoded
	// pixels, including the decoder's tables, in bytes. Both are checked
	// before any pixel is decoded.
	maxImageFile    = 64 << 20
	maxDecodedBytes = 256 << 20

	// maxNotebook bounds the file, because its text is built in memory, in
	// bytes.
	maxNotebook = 48 << 20
	// maxOutputLines and maxOutputBytes bound each output of a cell, which
	// may be longer than all code of the notebook.
	maxOutputLines = 100
	maxOutputBytes = 16 << 10
)
