package main

import (
	"cmp"
	"slices"
	"strings"
)

// before is the order of results: newest first, then by path. It is total, so
// pages of one search fit together.
func (m match) before(other match) int {
	if c := cmp.Compare(other.mtime, m.mtime); c != 0 {
		return c
	}
	return strings.Compare(m.path, other.path)
}

// top keeps the first size of the files it is given, so that a million of
// them cost the memory of a page. Once there are that many they are a heap
// with the last of them at its root.
type top struct {
	size int
	heap []match
}

func (t *top) add(m match) {
	switch {
	case len(t.heap) < t.size:
		m.path = strings.Clone(m.path) // shares its memory with a whole directory
		t.heap = append(t.heap, m)
		if len(t.heap) == t.size {
			for i := t.size/2 - 1; i >= 0; i-- {
				t.down(i)
			}
		}
	case t.size > 0 && m.before(t.heap[0]) < 0:
		m.path = strings.Clone(m.path)
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

// merge returns the first of what several tops hold, in order.
func merge(tops []top) []match {
	var all []match
	size := 0
	for _, t := range tops {
		size = t.size
		all = append(all, t.heap...)
	}
	slices.SortFunc(all, match.before)
	return all[:min(size, len(all))]
}
