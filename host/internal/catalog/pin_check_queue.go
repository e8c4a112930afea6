package catalog

import (
	"context"
	"time"
)

// pinCheckDelay is the time between a list and its comparison with the pins, so that the
// comparison does not take processor time while clients wait for their first lists.
const pinCheckDelay = 200 * time.Millisecond

// pinChecks are the lists that wait for their comparison. The catalog's mu guards it.
type pinChecks struct {
	open    map[chan struct{}]struct{} // waiting or running
	queue   []pinCheck
	running bool
	hurry   chan struct{} // capacity 1: do not pause
}

// pinCheck is a list that waits for the comparison with its pins.
type pinCheck struct {
	list   *listing
	asked  int // the list's number of requests
	pins   *pins
	server string
	items  []*Item
	done   chan struct{}
}

// queuePinCheck queues a list for the comparison with its pins, which runs in the
// background and pins new tools. request is the number of the request that brought the
// list.
func (c *Catalog) queuePinCheck(l *listing, request int, p *pins, server string, items []*Item) {
	done := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks.open[done] = struct{}{}
	c.checks.queue = append(c.checks.queue, pinCheck{l, request, p, server, items, done})
	if !c.checks.running {
		c.checks.running = true
		c.work.Go(c.runChecks)
	}
}

// runChecks compares the lists of the queue after pinCheckDelay, until it is empty.
func (c *Catalog) runChecks() {
	pause := time.NewTimer(pinCheckDelay)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-c.checks.hurry:
	case <-c.life.Done():
	}
	for {
		c.mu.Lock()
		queue := c.checks.queue
		c.checks.queue, c.checks.running = nil, len(queue) > 0
		c.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, check := range queue {
			c.runPinCheck(check)
		}
	}
}

// runPinCheck compares one list with its pins, pins new tools, and stores the difference unless the
// list was requested again since.
func (c *Catalog) runPinCheck(check pinCheck) {
	drift := check.pins.compareAndPin(c.life, check.server, check.items, func(changed []*ChangedError) { c.reportDrift(check.pins, check.server, changed) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if check.list.asked == check.asked {
		check.list.drift = drift
	}
	delete(c.checks.open, check.done)
	close(check.done)
}

// WaitForPinChecks waits until all lists so far have been compared and pinned.
func (c *Catalog) WaitForPinChecks(ctx context.Context) {
	for {
		var one chan struct{}
		c.mu.Lock()
		for one = range c.checks.open {
			break
		}
		c.mu.Unlock()
		if one == nil {
			return
		}
		select {
		case c.checks.hurry <- struct{}{}:
		default:
		}
		select {
		case <-one:
		case <-ctx.Done():
			return
		}
	}
}
