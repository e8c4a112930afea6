package main

import "time"

// Limits that callers meet.
const (
	// maxConcurrentCalls bounds the memory that calls take.
	maxConcurrentCalls = 4
	// callTimeout ends a call. It is far longer than the largest file on a
	// slow disk takes.
	callTimeout = 2 * time.Minute
	// maxStaleDiffLines bounds the diff lines shown of changes since the last view.
	maxStaleDiffLines = 40
	// maxDiffLines bounds the diff lines shown for a changed file.
	maxDiffLines = 40
	// maxNewFileLines bounds the lines shown for a created file, whose
	// content the caller has.
	maxNewFileLines = 8
	// maxFullLine bounds the lines that a diff shows completely, in bytes.
	// Of a longer line it shows longLineWindow characters.
	maxFullLine    = 400
	longLineWindow = 200
)
