package main

import (
	"cmp"
	"strings"
)

// match is one path that matches.
type match struct {
	path   string // relative to where the search starts
	mtime  int64  // nanoseconds; 0 when sorted by path
	isDir  bool
	secret bool // not readable by any tool
}

// before is the order of results: newest first, then by path. It is total, so
// pages of one listing fit together.
func (m match) before(other match) int {
	if c := cmp.Compare(other.mtime, m.mtime); c != 0 {
		return c
	}
	return strings.Compare(m.path, other.path)
}
