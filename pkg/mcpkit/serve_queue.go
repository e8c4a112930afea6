package mcpkit

import "sync"

// queueBytes bounds the requests that wait. Beyond it reading pauses, so that
// a flood is held back in the client's pipe instead of in our memory.
const queueBytes = 256 << 20

// A queue runs requests, at most limit at a time, in the order they came.
type queue struct {
	limit int
	run   func(*view)

	mu      sync.Mutex
	room    sync.Cond
	waiting []*view // [head:] wait
	head    int
	bytes   int // of those that wait
	running int
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
	if q.running < q.limit {
		q.running++
		go q.work(v)
		return
	}
	for q.bytes > queueBytes {
		q.room.Wait()
	}
	q.waiting = append(q.waiting, v)
	q.bytes += len(v.line)
}

// work runs v and then those that wait, until none does.
func (q *queue) work(v *view) {
	for ; v != nil; v = q.next() {
		q.run(v)
	}
}

func (q *queue) next() *view {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.waiting) {
		q.running--
		q.waiting, q.head = nil, 0
		return nil
	}
	v := q.waiting[q.head]
	q.waiting[q.head] = nil
	q.head++
	q.bytes -= len(v.line)
	q.room.Signal()
	if q.head > 1024 && q.head*2 > len(q.waiting) {
		q.waiting = append([]*view(nil), q.waiting[q.head:]...)
		q.head = 0
	}
	return v
}
