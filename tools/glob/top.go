package main

import (
	"cmp"
	"slices"
	"strings"
)

// match is one path that matches.
type match struct {
	path  string // relative to where the search starts
	mtime int64  // nanoseconds; 0 when sorted by path
	isDir bool
}

// before is the order of results: newest first, then by path. It is total, so
// pages of one listing fit together.
func (m match) before(other match) int {
	if c := cmp.Compare(other.mtime, m.mtime); c != 0 {
		return c
	}
	return strings.Compare(m.path, other.path)
}

// top keeps the first size of the matches it is given, so a million matches
// cost the memory of a page. Once there are that many they are a heap with
// the last of them at its root; fewer are just a list, which costs nothing.
type top struct {
	size int
	heap []match
}

func (t *top) add(m match) {
	switch {
	case len(t.heap) < t.size:
		t.heap = append(t.heap, m)
		if len(t.heap) == t.size {
			for i := t.size/2 - 1; i >= 0; i-- {
				t.down(i)
			}
		}
	case t.size > 0 && m.before(t.heap[0]) < 0:
		t.heap[0] = m
		t.down(0)
	}
}

func (t *top) down(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.heap[child].before(t.heap[last]) > 0 {
				last = child
			}
		}
		if last == i {
			return
		}
		t.heap[i], t.heap[last] = t.heap[last], t.heap[i]
		i = last
	}
}

// merge returns the matches from offset on of what several tops hold, at
// most limit.
func merge(tops []top, offset, limit int) []match {
	held := 0
	for _, t := range tops {
		held += len(t.heap)
	}
	all := make([]match, 0, held)
	for _, t := range tops {
		all = append(all, t.heap...)
	}
	slices.SortFunc(all, match.before)
	all = all[min(offset, len(all)):]
	return all[:min(limit, len(all))]
}
