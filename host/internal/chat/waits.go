package chat

import (
	"sync"
	"time"
)

// waits counts how long the calls of a turn waited for the user. The time that is shown of a
// call under way excludes it.
type waits struct {
	mu sync.Mutex
	by map[string]time.Duration // by the id of a call
}

func (w *waits) add(id string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]time.Duration{}
	}
	w.by[id] += d
}

func (w *waits) of(id string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.by[id]
}

// reset forgets the waits of the last turn.
func (w *waits) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by = nil
}
