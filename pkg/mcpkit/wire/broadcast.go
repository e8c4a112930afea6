package wire

import (
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// sendBroadcasts is runNotifier for a session that gets broadcasts: the sender
// does not wait for this client to read. A client that reads too slowly misses
// some notifications, but not which lists have changed.
func (req *request) sendBroadcasts(p *notifier) {
	next, written := make(chan encodedNotification), make(chan struct{})
	go func() {
		defer close(written)
		for n := range next {
			req.sendEncoded(n)
		}
	}()
	var pending backlog
	addPending := func(n mcp.JSONRPCNotification) {
		if one, ok := req.encodeNotification(n); ok {
			pending.add(one)
		}
	}
	for stop := p.stop; ; {
		var out chan<- encodedNotification
		var first encodedNotification
		switch {
		case len(pending.notifications) > 0:
			out, first = next, pending.notifications[0]
		case stop == nil:
			close(next)
			<-written
			return
		}
		select {
		case n := <-p.notifications:
			addPending(n)
			p.wakeWaiting()
		case out <- first:
			pending.removeFirst()
		case <-stop:
			for stop = nil; len(p.notifications) > 0; {
				addPending(<-p.notifications)
			}
		}
	}
}

// notificationCost is the memory of a notification in addition to its line, in
// bytes.
const notificationCost = 128

// backlog holds the notifications that wait for a client: about maxWriteBacklog
// bytes, and at most one notification for each changed list.
type backlog struct {
	notifications []encodedNotification
	bytes         int // memory of the notifications
}

// add appends a notification. It drops the notification if the backlog is full,
// or if the same changed list is in it already.
func (b *backlog) add(n encodedNotification) {
	if strings.HasSuffix(n.method, "/list_changed") { // one notification of a changed list is enough
		if slices.ContainsFunc(b.notifications, func(have encodedNotification) bool { return have.method == n.method }) {
			return
		}
	} else if b.bytes > maxWriteBacklog {
		return
	}
	b.notifications = append(b.notifications, n)
	b.bytes += len(n.line) + notificationCost
}

// removeFirst removes the oldest notification. The backlog must not be empty.
func (b *backlog) removeFirst() {
	b.bytes -= len(b.notifications[0].line) + notificationCost
	b.notifications[0] = encodedNotification{}
	b.notifications = b.notifications[1:]
}
