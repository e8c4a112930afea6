package oauth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Refreshes holds the refreshes of a process whose refresh token was sent, until the new tokens are
// stored. A process that ends before that loses the refresh token in the answer, and the provider no
// longer accepts the old one. The zero value is ready for use.
type Refreshes struct {
	mu      sync.Mutex
	running map[*renewal]struct{}
}

// RefreshTime is the longest time of a refresh: the request, and the storing of the tokens.
const RefreshTime = requestTimeout + 5*time.Second

// Await waits until no refresh is running, at most d. It reports whether none is.
func (r *Refreshes) Await(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	for {
		one := r.any()
		if one == nil {
			return true
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return false
		}
	}
}

// any returns a running refresh; nil: there is none.
func (r *Refreshes) any() *renewal {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.running {
		return one
	}
	return nil
}

// add adds a refresh. It does nothing for nil.
func (r *Refreshes) add(one *renewal) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[*renewal]struct{}{}
	}
	r.running[one] = struct{}{}
}

// remove removes a refresh that has ended. It does nothing for nil.
func (r *Refreshes) remove(one *renewal) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, one)
}

// errAbandoned is the error of a renewal that had not sent the refresh token at Close.
var errAbandoned = errors.New("the host is shutting down")

// beginSending marks the running renewal: from now on its refresh token counts as sent. It returns
// errAbandoned if Close was called before.
func (s *Source) beginSending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running.abandoned {
		return errAbandoned
	}
	s.running.sent = true
	s.cfg.Refreshes.add(s.running)
	return nil
}

// Close ends a running renewal that has not sent the refresh token, for example because it waits for
// another process. One that has sent it goes on: with Config.Refreshes, the caller waits for that at
// the end of the process; otherwise Close waits, at most RefreshTime.
func (s *Source) Close() {
	s.mu.Lock()
	running := s.running
	if running == nil {
		s.mu.Unlock()
		return
	}
	sent := running.sent
	running.abandoned = !sent
	s.mu.Unlock()
	if sent && s.cfg.Refreshes == nil {
		running.endsWithin(context.Background(), RefreshTime)
	}
}
