package main

import (
	"cmp"
	"strings"
)

// match is a matching path.
type match struct {
	path   string // relative to the starting directory
	mtime  int64  // nanoseconds; 0 when sorted by path
	isDir  bool
	secret bool // no tool can read it
}

// compare orders matches: newest first, then by path. The order is total, so
// that the pages of a listing neither overlap nor leave gaps.
func (m match) compare(other match) int {
	if c := cmp.Compare(other.mtime, m.mtime); c != 0 {
		return c
	}
	return strings.Compare(m.path, other.path)
}
