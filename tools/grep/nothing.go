package main

import (
	"context"
	"strings"
)

// near is what a second look found.
type near struct {
	files int
	more  bool // there may be more
	paths []string
}

func (n near) remark() string { return "" }

// second is what a short second look found beside the matches.
type second struct {
	ignored near // files that match and are ignored
	cased   near // files that match but for case
}

// lookAgain looks for what the search did not: a short time only.
func (q *query) lookAgain(ctx context.Context, f *found) second { return second{} }

func (s second) write(b *strings.Builder) {}
