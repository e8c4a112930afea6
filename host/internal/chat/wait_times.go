package chat

import (
	"sync"
	"time"
)

// waitTimes counts the time that the calls of a turn waited for the user. The shown
// duration of a running call excludes it.
type waitTimes struct {
	mu sync.Mutex
	by map[string]time.Duration // by id of the call
}

// add adds d to the time that the call id waited.
func (w *waitTimes) add(id string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]time.Duration{}
	}
	w.by[id] += d
}

// of returns the time that the call id waited.
func (w *waitTimes) of(id string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.by[id]
}

// reset clears the times of the last turn.
func (w *waitTimes) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by = nil
}
