package state

import (
	"context"
	"sync"
)

// queue makes the goroutines of one process wait in order of arrival. The zero
// value is ready to use.
type queue struct {
	mu    sync.Mutex
	lines map[string][]chan struct{} // the holder of a name, then the waiting goroutines
}

// acquire waits until no other goroutine holds the name.
func (q *queue) acquire(ctx context.Context, name string) error {
	turn := make(chan struct{})
	q.mu.Lock()
	if q.lines == nil {
		q.lines = map[string][]chan struct{}{}
	}
	if len(q.lines[name]) == 0 {
		close(turn)
	}
	q.lines[name] = append(q.lines[name], turn)
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
		q.drop(name, turn)
		return ctx.Err()
	}
}

// release hands the name to the next waiting goroutine.
func (q *queue) release(name string) {
	q.mu.Lock()
	first := q.lines[name][0]
	q.mu.Unlock()
	q.drop(name, first)
}

// drop removes a goroutine from the line, at any position.
func (q *queue) drop(name string, turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.lines[name]
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
	q.lines[name] = line
	if len(line) == 0 {
		delete(q.lines, name)
	}
}
