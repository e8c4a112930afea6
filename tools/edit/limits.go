package main

import "time"

// Limits that callers meet.
const (
	// maxConcurrentCalls bounds the memory that calls take.
	maxConcurrentCalls = 4
	// callTimeout ends a call. It is far longer than the largest file on a
	// slow disk takes.
	callTimeout = 2 * time.Minute
	// maxEdits bounds the edits of a call, and so the number of passes over a file.
	maxEdits = 100
	// maxDiffLines bounds the lines shown of a diff.
	maxDiffLines = 60
	// maxListed bounds the line numbers listed for replacements, and the
	// edits described one by one.
	maxListed = 20
	// maxFullLine bounds the lines that a diff shows completely, in bytes.
	// Of a longer line it shows longLineWindow characters.
	maxFullLine    = 1000
	longLineWindow = 200
)
