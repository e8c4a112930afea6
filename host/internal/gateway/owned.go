package gateway

import (
	"context"
	"sync"
)

// owned are the goroutines that outlive a request: listen streams and calls
// that wait for the client's answers. Close ends them and waits.
type owned struct {
	life context.Context
	end  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// run runs f in a goroutine, or here if the gateway is closed. Closing cancels
// ctx with cancel.
func (o *owned) run(cancel context.CancelCauseFunc, f func()) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		cancel(errStopping)
		f()
		return
	}
	o.work.Add(1)
	o.mu.Unlock()
	stop := context.AfterFunc(o.life, func() { cancel(errStopping) })
	go func() {
		defer o.work.Done()
		defer stop()
		f()
	}()
}

// Close ends the listen streams and the calls that wait for answers of
// clients, and waits until they are over. Requests that come later end at
// once. Call it after the servers have been closed.
func (g *Gateway) Close() {
	g.owned.mu.Lock()
	g.owned.closed = true
	g.owned.mu.Unlock()
	g.owned.end(errStopping)
	g.parked.stop()
	g.owned.work.Wait()
}
