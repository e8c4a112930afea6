package mcpkit

import "sync"

// queueBytes bounds the requests that wait. Beyond it reading pauses, so that
// a flood is held back in the client's pipe instead of in our memory.
const queueBytes = 256 << 20

// requestCost is what a waiting request takes beside its line.
const requestCost = 1 << 10

// A queue runs requests, at most limit at a time, in the order they came. Its
// goroutines stay for the next request: growing a new one's stack each time
// was a quarter of the cost of a small call.
type queue struct {
	limit int
	run   func(*view)

	mu      sync.Mutex
	room    sync.Cond
	waiting []*view // [head:] wait
	head    int
	bytes   int          // of those that wait
	workers int          // idle ones included
	idle    []chan *view // of the workers that wait; the last one is the warmest
	closed  bool
}

func newQueue(limit int, run func(*view)) *queue {
	q := &queue{limit: limit, run: run}
	q.room.L = &q.mu
	return q
}

// add runs v now or later.
func (q *queue) add(v *view) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := len(q.idle) - 1; last >= 0 {
		worker := q.idle[last]
		q.idle = q.idle[:last]
		worker <- v
		return
	}
	if q.workers < q.limit {
		q.workers++
		go q.work(v)
		return
	}
	for q.bytes > queueBytes {
		q.room.Wait()
	}
	q.waiting = append(q.waiting, v)
	q.bytes += len(v.line) + requestCost
}

// work runs v and then what comes, until the queue is closed.
func (q *queue) work(v *view) {
	hand := make(chan *view, 1)
	for v != nil {
		q.run(v)
		if v = q.next(hand); v == nil {
			v = <-hand // nil when closed
		}
	}
}

// next returns the first request that waits. When none does, the worker will
// be handed one.
func (q *queue) next(hand chan *view) *view {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.waiting) {
		q.waiting, q.head = nil, 0
		if q.closed {
			close(hand)
		} else {
			q.idle = append(q.idle, hand)
		}
		return nil
	}
	v := q.waiting[q.head]
	q.waiting[q.head] = nil
	q.head++
	q.bytes -= len(v.line) + requestCost
	q.room.Signal()
	if q.head > 1024 && q.head*2 > len(q.waiting) {
		q.waiting = append([]*view(nil), q.waiting[q.head:]...)
		q.head = 0
	}
	return v
}

// close ends the workers when nothing waits any more. No more may be added.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, hand := range q.idle {
		close(hand)
	}
	q.idle = nil
}
