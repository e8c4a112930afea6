package state

import (
	"context"
	"sync"
)

// lockQueue lets the goroutines of one process take a lock in order of arrival.
// The zero value is ready to use.
type lockQueue struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{} // the holder of a name, then the waiting goroutines
}

// acquire waits until no other goroutine holds name, and holds it until
// release. It returns ctx.Err() if ctx ends first.
func (q *lockQueue) acquire(ctx context.Context, name string) error {
	turn := make(chan struct{})
	q.mu.Lock()
	if q.waiting == nil {
		q.waiting = map[string][]chan struct{}{}
	}
	if len(q.waiting[name]) == 0 {
		close(turn)
	}
	q.waiting[name] = append(q.waiting[name], turn)
	q.mu.Unlock()
	select {
	case <-turn: // even if ctx has ended: then another process holds the lock
		return nil
	default:
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		q.removeWaiting(name, turn)
		return ctx.Err()
	}
}

// release ends the holding of name, and hands it to the goroutine that has
// waited longest.
func (q *lockQueue) release(name string) {
	q.mu.Lock()
	first := q.waiting[name][0]
	q.mu.Unlock()
	q.removeWaiting(name, first)
}

// removeWaiting removes a goroutine, identified by its channel turn, from those
// that wait for name. If its turn has come already, the next one gets the lock.
func (q *lockQueue) removeWaiting(name string, turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.waiting[name]
	for i, other := range line {
		if other != turn {
			continue
		}
		line = append(line[:i:i], line[i+1:]...)
		if i == 0 && len(line) > 0 {
			close(line[0])
		}
		break
	}
	q.waiting[name] = line
	if len(line) == 0 {
		delete(q.waiting, name)
	}
}
