package main

import (
	"cmp"
	"slices"
	"strings"
	"sync"
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
// most limit. It sorts each in place, side by side.
func merge(tops []top, offset, limit int) []match {
	var group sync.WaitGroup
	held := 0
	for _, t := range tops {
		held += len(t.heap)
		group.Go(func() { slices.SortFunc(t.heap, match.before) })
	}
	group.Wait()
	page := make([]match, 0, min(limit, max(held-offset, 0)))
	rest := make([][]match, len(tops))
	for i, t := range tops {
		rest[i] = t.heap
	}
	for n := range min(held, offset+limit) {
		first := -1
		for i, list := range rest {
			if len(list) > 0 && (first < 0 || list[0].before(rest[first][0]) < 0) {
				first = i
			}
		}
		if n >= offset {
			page = append(page, rest[first][0])
		}
		rest[first] = rest[first][1:]
	}
	return page
}
