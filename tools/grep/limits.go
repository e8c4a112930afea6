package main

// Limits and defaults that callers meet. DefaultConfig has those that flags set, and the
// tags of arguments (grep.go) have the other defaults, such as that of head_limit.
const (
	// lineWidth bounds the characters shown of a line.
	lineWidth = 400
	// defaultPerFile is max_per_file by default, if path is a directory.
	defaultPerFile = 20
	// maxHeadLimit is used if the caller wants no limit. Then only the budget
	// bounds the answer.
	maxHeadLimit = 100_000
	// maxContext bounds the lines of context on each side.
	maxContext = 10_000
	// defaultContextBytes bounds an answer with context that the caller did not
	// request, in bytes.
	defaultContextBytes = 1200
	// maxConcurrent is the largest number of concurrent calls. It bounds their
	// memory.
	maxConcurrent = 4
)
