package wire

import "sync"

// maxQueueBytes bounds the memory of waiting requests, in bytes. Beyond it,
// reading pauses, so that a flood waits in the client's pipe instead of in this
// process.
const maxQueueBytes = 256 << 20

// requestCost is the memory of a waiting request in addition to its line, in
// bytes.
const requestCost = 1 << 10

// workerTask is a worker's next work: to run a request, or to run readLoop until it
// returns a request. The zero task ends the worker.
type workerTask struct {
	request  *request
	readLoop func() *request
}

// A requestQueue runs requests in order of arrival, at most limit at a time. Its
// goroutines stay for later requests: growing a new goroutine's stack each time
// was a quarter of the cost of a small call.
type requestQueue struct {
	limit int
	run   func(*request)

	mu       sync.Mutex
	hasSpace sync.Cond
	waiting  []*request // waiting[head:] are the requests that wait
	head     int
	bytes    int               // memory of the waiting requests
	workers  int               // number of workers, including idle ones
	idle     []chan workerTask // channels of the idle workers; the last was busy most recently
	closed   bool
}

// newRequestQueue returns a queue that runs each request by run.
func newRequestQueue(limit int, run func(*request)) *requestQueue {
	q := &requestQueue{limit: limit, run: run}
	q.hasSpace.L = &q.mu
	return q
}

// add runs a request, at once or when a worker is free. It blocks while more
// than maxQueueBytes wait.
func (q *requestQueue) add(req *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := len(q.idle) - 1; last >= 0 {
		worker := q.idle[last]
		q.idle = q.idle[:last]
		worker <- workerTask{request: req}
		return
	}
	if q.workers < q.limit {
		q.workers++
		go q.runWorker(workerTask{request: req})
		return
	}
	for q.bytes > maxQueueBytes {
		q.hasSpace.Wait()
	}
	q.waiting = append(q.waiting, req)
	q.bytes += len(req.line) + requestCost
}

// handOffReading hands the read loop of the calling goroutine to an idle
// worker, so that this goroutine can run a request itself and becomes a worker.
// It does so only if every worker is idle and there is at least one; ok reports
// whether it did.
func (q *requestQueue) handOffReading(readLoop func() *request) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := len(q.idle) - 1
	if last < 0 || len(q.idle) < q.workers || q.closed {
		return false
	}
	worker := q.idle[last]
	q.idle = q.idle[:last]
	worker <- workerTask{readLoop: readLoop}
	return true
}

// runWorker does t and then later tasks, until the queue is closed or the input
// has ended. A goroutine that reads becomes a worker of the queue of the
// request that it returns with.
func (q *requestQueue) runWorker(t workerTask) {
	own := make(chan workerTask, 1)
	for {
		req := t.request
		if t.readLoop != nil {
			if req = t.readLoop(); req != nil {
				q = req.queue
			}
		}
		if req == nil {
			return
		}
		q.run(req)
		if t = (workerTask{request: q.next(own)}); t.request == nil {
			t = <-own
		}
	}
}

// next removes and returns the request that has waited longest. If none waits,
// it returns nil: the worker then gets its next task from its channel worker.
func (q *requestQueue) next(worker chan workerTask) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.waiting) {
		q.waiting, q.head = nil, 0
		if q.closed {
			close(worker)
		} else {
			q.idle = append(q.idle, worker)
		}
		return nil
	}
	req := q.waiting[q.head]
	q.waiting[q.head] = nil
	q.head++
	q.bytes -= len(req.line) + requestCost
	q.hasSpace.Signal()
	if q.head > 1024 && q.head*2 > len(q.waiting) {
		q.waiting = append([]*request(nil), q.waiting[q.head:]...)
		q.head = 0
	}
	return req
}

// close ends the workers once the queue is empty. Do not call add after it.
func (q *requestQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, worker := range q.idle {
		close(worker)
	}
	q.idle = nil
}
