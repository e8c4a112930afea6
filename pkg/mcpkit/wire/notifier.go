package wire

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// notifierCapacity is the capacity of the channel for mcp-go's notifications.
// mcp-go drops notifications that do not fit, so NotificationChannel returns
// the channel only while it is at most half full.
const notifierCapacity = 256

// A notifier passes the notifications of one request, which mcp-go can only
// send to a channel, to the writer. It is made on demand: making one for each
// request cost 45 % of the throughput at 64 requests in flight.
type notifier struct {
	notifications chan mcp.JSONRPCNotification
	hasSpace      chan struct{} // wakes a goroutine that waits in NotificationChannel
	stop          chan struct{} // closed to end the notifier
	stopped       chan struct{} // closed when the notifier has written all notifications
}

// NotificationChannel returns the channel for one notification; mcp-go calls it
// for each. It waits while the channel is more than half full. After the answer
// it returns nil, so that mcp-go's send gives up.
func (req *request) NotificationChannel() chan<- mcp.JSONRPCNotification {
	req.mu.Lock()
	if req.sendingEnded() {
		req.mu.Unlock()
		return nil
	}
	if req.notifier == nil {
		req.notifier = &notifier{
			notifications: make(chan mcp.JSONRPCNotification, notifierCapacity),
			hasSpace:      make(chan struct{}, 1),
			stop:          make(chan struct{}),
			stopped:       make(chan struct{}),
		}
		go req.runNotifier(req.notifier)
	}
	p := req.notifier
	req.mu.Unlock()
	for len(p.notifications) > notifierCapacity/2 {
		select {
		case <-p.stopped:
			return nil
		case <-p.hasSpace:
		}
	}
	p.wakeWaiting() // wakes the next waiting caller
	return p.notifications
}

// wakeWaiting wakes a goroutine that waits in NotificationChannel, if there is
// one.
func (p *notifier) wakeWaiting() {
	select {
	case p.hasSpace <- struct{}{}:
	default:
	}
}

// runNotifier writes notifications until p.stop is closed, and then the
// remaining ones.
func (req *request) runNotifier(p *notifier) {
	defer close(p.stopped)
	if req.listen || req == req.conn.session {
		req.sendBroadcasts(p)
		return
	}
	for {
		select {
		case n := <-p.notifications:
			req.sendNotification(n)
			p.wakeWaiting()
		case <-p.stop:
			for {
				select {
				case n := <-p.notifications:
					req.sendNotification(n)
				default:
					return
				}
			}
		}
	}
}

// An encodedNotification is a notification as one line of JSON.
type encodedNotification struct {
	method string
	line   []byte
}

// sendNotification encodes a notification and sends it, unless it cannot be
// encoded or the request is cancelled.
func (req *request) sendNotification(n mcp.JSONRPCNotification) {
	if one, ok := req.encodeNotification(n); ok {
		req.sendEncoded(one)
	}
}

// encodeNotification encodes a notification; on a subscription stream with the
// stream's id. ok is false if it cannot be encoded, which is logged.
func (req *request) encodeNotification(n mcp.JSONRPCNotification) (encoded encodedNotification, ok bool) {
	if req.listen {
		// Every message of the stream carries its id, as received.
		meta := maps.Clone(n.Params.Meta)
		if meta == nil {
			meta = make(map[string]any, 1)
		}
		meta[mcp.MetaKeySubscriptionID] = req.id
		n.Params.Meta = meta
	}
	params, err := json.Marshal(n.Params)
	if err != nil {
		req.conn.logf("cannot encode %s: %v", n.Method, err)
		return encodedNotification{}, false
	}
	if string(params) == "{}" {
		params = nil
	}
	return encodedNotification{n.Method, jsonrpc.AppendNotification(nil, n.Method, params)}, true
}

// sendEncoded sends a notification, unless the request is cancelled.
func (req *request) sendEncoded(n encodedNotification) {
	if req.state.Load() == cancelled {
		return
	}
	req.conn.send(n.line)
	if req.listen && n.method == mcp.MethodNotificationSubscriptionsAcknowledged {
		req.mu.Lock()
		req.ackSent = true
		if req.ackReached != nil {
			close(req.ackReached)
		}
		req.mu.Unlock()
	}
}

// Acknowledged returns a channel that is closed once the subscription stream of
// ctx's request has been acknowledged, which must be its first message. For a
// request that did not come over ServeStdio it returns nil, which never becomes
// readable. Call it once a request.
func Acknowledged(ctx context.Context) <-chan struct{} {
	req := requestOf(ctx)
	if req == nil {
		return nil
	}
	req.mu.Lock()
	defer req.mu.Unlock()
	req.ackReached = make(chan struct{})
	if req.ackSent {
		close(req.ackReached)
	}
	return req.ackReached
}

// closeSending ends the sending of notifications for the request: it returns
// once earlier notifications have been written; later ones are dropped.
func (req *request) closeSending() {
	req.mu.Lock()
	req.sendingClosed = true
	p := req.notifier
	req.mu.Unlock()
	if p != nil {
		close(p.stop)
		<-p.stopped
	}
}
