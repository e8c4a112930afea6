package main

import "time"

// Limits that callers meet. The default limit of paths, 100, is in the tag of
// arguments.Limit.
const (
	// defaultTimeout is the time after which a call returns partial results.
	defaultTimeout = 10 * time.Second
	// maxLimit is the limit used for limit=0 and for larger limits.
	maxLimit = 100_000
)
