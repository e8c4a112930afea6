package mcpkit

import "sync"

// queueBytes bounds the requests that wait. Beyond it reading pauses, so that
// a flood is held back in the client's pipe instead of in our memory.
const queueBytes = 256 << 20

// requestCost is what a waiting request takes beside its line.
const requestCost = 1 << 10

// task is what a worker is handed: a request, or to read what comes next, until
// that returns a request to run. The zero task is the end.
type task struct {
	run  *view
	read func() *view
}

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
	bytes   int         // of those that wait
	workers int         // idle ones included
	idle    []chan task // of the workers that wait; the last one is the warmest
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
		worker <- task{run: v}
		return
	}
	if q.workers < q.limit {
		q.workers++
		go q.work(task{run: v})
		return
	}
	for q.bytes > queueBytes {
		q.room.Wait()
	}
	q.waiting = append(q.waiting, v)
	q.bytes += len(v.line) + requestCost
}

// relieve has a worker go on with the caller's reading, so that the caller can
// run a request itself, as a worker from then on. It does so where all workers
// are idle; ok is false where not, or where there is none.
func (q *queue) relieve(read func() *view) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := len(q.idle) - 1
	if last < 0 || len(q.idle) < q.workers || q.closed {
		return false
	}
	worker := q.idle[last]
	q.idle = q.idle[:last]
	worker <- task{read: read}
	return true
}

// work does t and then what comes, until the queue is closed or the input has
// ended. Who reads becomes a worker of the queue that it takes a request from.
func (q *queue) work(t task) {
	hand := make(chan task, 1)
	for {
		v := t.run
		if t.read != nil {
			if v = t.read(); v != nil {
				q = v.queue
			}
		}
		if v == nil {
			return
		}
		q.run(v)
		if t = (task{run: q.next(hand)}); t.run == nil {
			t = <-hand
		}
	}
}

// next returns the first request that waits. When none does, the worker will
// be handed one.
func (q *queue) next(hand chan task) *view {
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
