package mcpkittest

import (
	"time"
)

// MaxWait is the limit of every wait of a test. It is long because only failures
// reach it: a single processor may test several packages and do other work as
// well.
const MaxWait = 3 * time.Minute

// Answer waits for the answer to id, given as on the wire, and takes it, so
// that it is returned once. It fails the test if the server ends without it.
func (c *Client) Answer(id string) Answer {
	c.t.Helper()
	var answer Answer
	c.Until("the answer to "+id, func() bool {
		list := c.untaken[id]
		if len(list) == 0 {
			return false
		}
		answer, c.untaken[id] = list[0], list[1:]
		return true
	})
	return answer
}

// Until waits until done returns true; what names that in failures. done is
// called with the client locked whenever a message arrives.
func (c *Client) Until(what string, done func() bool) {
	c.t.Helper()
	timer := time.NewTimer(MaxWait)
	defer timer.Stop()
	for {
		c.mu.Lock()
		ok, ended, change := done(), c.ended, c.changed
		c.mu.Unlock()
		if ok {
			return
		}
		if ended {
			c.t.Fatalf("the server ended without %s; its standard error:\n%s", what, c.stderr.String())
		}
		select {
		case <-change:
		case <-timer.C:
			c.t.Fatalf("no %s within %v; standard error:\n%s", what, MaxWait, c.stderr.String())
		}
	}
}

// Notifications returns the received notifications of a method, in order; ""
// means all methods.
func (c *Client) Notifications(method string) []Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Notification
	for _, n := range c.notifications {
		if method == "" || n.Method == method {
			list = append(list, n)
		}
	}
	return list
}

// Untaken returns the received answers that Answer has not taken.
func (c *Client) Untaken() []Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Answer
	for _, answers := range c.untaken {
		list = append(list, answers...)
	}
	return list
}

// Wait waits for the server to exit and returns its exit status, or -1 if a
// signal ended it.
func (c *Client) Wait() int {
	c.t.Helper()
	select {
	case <-c.exited:
	case <-time.After(MaxWait):
		c.t.Fatalf("the server did not exit within %v", MaxWait)
	}
	return c.exit
}
