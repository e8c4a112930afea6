package gateway

import (
	"context"
	"sync"
)

// backgroundTasks tracks the goroutines that outlive a request: subscription streams and calls
// that wait for a client's answers. Gateway.Close ends them and waits.
type backgroundTasks struct {
	life context.Context
	end  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// runTracked calls f in a goroutine for which Close waits, or directly, with a cancelled
// context, if the gateway is closed. cancel must cancel the context of f; Close calls it.
func (o *backgroundTasks) runTracked(cancel context.CancelCauseFunc, f func()) {
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

// Close ends the subscription streams and the calls that wait for a client's answers,
// and waits for them. Later requests end at once. The HTTP and stdio servers must be
// closed first.
func (g *Gateway) Close() {
	g.background.mu.Lock()
	g.background.closed = true
	g.background.mu.Unlock()
	g.background.end(errStopping)
	g.parked.stop()
	g.background.work.Wait()
}
