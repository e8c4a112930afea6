// Package topk keeps the first k of any number of things in the memory of k,
// as a page of results needs of a million.
package topk

import (
	"math"
	"slices"
	"sync"
)

// Top keeps the first of the values it is given, in the order of before,
// which is total and compares as cmp.Compare does. Once it has as many as it
// may they are a heap with the last of them at its root; fewer are just a
// list, which costs nothing. It serves one goroutine.
type Top[T any] struct {
	size   int
	before func(a, b T) int
	heap   []T
}

// New returns one that keeps what a page of limit values from offset on takes.
func New[T any](offset, limit int, before func(a, b T) int) Top[T] {
	return Top[T]{size: limit + min(offset, math.MaxInt-limit), before: before}
}

// Takes reports whether Add would keep a value.
func (t *Top[T]) Takes(v T) bool {
	return len(t.heap) < t.size || t.size > 0 && t.before(v, t.heap[0]) < 0
}

// Add keeps a value if it is among the first so far.
func (t *Top[T]) Add(v T) {
	switch {
	case !t.Takes(v):
	case len(t.heap) < t.size:
		t.heap = append(t.heap, v)
		if len(t.heap) == t.size {
			for i := t.size/2 - 1; i >= 0; i-- {
				t.down(i)
			}
		}
	default:
		t.heap[0] = v
		t.down(0)
	}
}

func (t *Top[T]) down(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.before(t.heap[child], t.heap[last]) > 0 {
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

// Merge returns the values from offset on that the page of several tops, made
// alike, ends with. It sorts each in place, side by side; they are of no use
// any more.
func Merge[T any](tops []Top[T], offset int) []T {
	var group sync.WaitGroup
	held := 0
	for _, t := range tops {
		held += len(t.heap)
		if len(t.heap) > 1 {
			group.Go(func() { slices.SortFunc(t.heap, t.before) })
		}
	}
	group.Wait()
	size := max(min(held, tops[0].size)-offset, 0)
	page := make([]T, 0, size)
	for n := 0; len(page) < size; n++ {
		first := -1
		for i := range tops {
			if len(tops[i].heap) > 0 && (first < 0 || tops[i].before(tops[i].heap[0], tops[first].heap[0]) < 0) {
				first = i
			}
		}
		if n >= offset {
			page = append(page, tops[first].heap[0])
		}
		tops[first].heap = tops[first].heap[1:]
	}
	return page
}
