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

// top keeps the first size of the matches it is given: a heap with the last
// of them at its root, so a million matches cost the memory of a page.
type top struct {
	size int
	heap []match
}

func (t *top) add(m match) {
	switch {
	case len(t.heap) < t.size:
		t.heap = append(t.heap, m)
		t.up(len(t.heap) - 1)
	case t.size > 0 && m.before(t.heap[0]) < 0:
		t.heap[0] = m
		t.down(0)
	}
}

func (t *top) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if t.heap[i].before(t.heap[parent]) <= 0 {
			return
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
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
	var all []match
	for _, t := range tops {
		all = append(all, t.heap...)
	}
	slices.SortFunc(all, match.before)
	all = all[min(offset, len(all)):]
	return all[:min(limit, len(all))]
}
