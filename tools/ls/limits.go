package main

// Limits that callers meet. The defaults, and maxDepth again, are in the tags of
// arguments (ls.go).
const (
	// maxLimit is the limit used for limit=0 and for larger limits.
	maxLimit = 10_000
	// maxDepth is the largest depth.
	maxDepth = 20
)
