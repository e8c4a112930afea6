// Package topk finds the first k of many values in memory for k values, such as
// a page of results among a million.
package topk

import (
	"math"
	"slices"
	"sync"
)

// Top keeps the first of the values that are added to it, in the order of
// compare. compare returns a number like cmp.Compare, and must be a total
// order. Until a Top is full it is a plain list; then it is a heap with its
// last value at the root. It is not safe for concurrent use.
type Top[T any] struct {
	size    int
	compare func(a, b T) int
	heap    []T
}

// New returns a Top that keeps the first offset+limit values: enough for a page
// of limit values after offset others.
func New[T any](offset, limit int, compare func(a, b T) int) Top[T] {
	return Top[T]{size: limit + min(offset, math.MaxInt-limit), compare: compare}
}

// WouldKeep reports whether Add would keep v.
func (t *Top[T]) WouldKeep(v T) bool {
	return len(t.heap) < t.size || t.size > 0 && t.compare(v, t.heap[0]) < 0
}

// Add keeps v if it is among the first values so far, and drops the last of
// them if the Top was full.
func (t *Top[T]) Add(v T) {
	switch {
	case !t.WouldKeep(v):
	case len(t.heap) < t.size:
		t.heap = append(t.heap, v)
		if len(t.heap) == t.size {
			for i := t.size/2 - 1; i >= 0; i-- {
				t.siftDown(i)
			}
		}
	default:
		t.heap[0] = v
		t.siftDown(0)
	}
}

// siftDown moves the value at index i down to its position in the heap.
func (t *Top[T]) siftDown(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.compare(t.heap[child], t.heap[last]) > 0 {
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

// Merge returns the first values of several Tops together, sorted, without the
// first offset values. The Tops must have been made with the same arguments.
// Merge changes them, so they must not be used afterwards.
func Merge[T any](tops []Top[T], offset int) []T {
	var group sync.WaitGroup
	held := 0
	for _, t := range tops {
		held += len(t.heap)
		if len(t.heap) > 1 {
			group.Go(func() { slices.SortFunc(t.heap, t.compare) })
		}
	}
	group.Wait()
	size := max(min(held, tops[0].size)-offset, 0)
	page := make([]T, 0, size)
	for n := 0; len(page) < size; n++ {
		first := -1
		for i := range tops {
			if len(tops[i].heap) > 0 && (first < 0 || tops[i].compare(tops[i].heap[0], tops[first].heap[0]) < 0) {
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
