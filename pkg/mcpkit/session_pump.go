package mcpkit

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// pumpSize is the capacity of the channel for mcp-go's notifications. mcp-go
// drops notifications that do not fit, so callers get the channel only while it
// is at most half full.
const pumpSize = 256

// A pump passes the notifications of one view, which mcp-go can only send to a
// channel, to the writer. It is made on demand: making one for each request
// cost 45 % of the throughput at 64 requests in flight.
type pump struct {
	ch    chan mcp.JSONRPCNotification
	room  chan struct{} // wakes one of the callers that wait for room
	stop  chan struct{}
	ended chan struct{}
}

// NotificationChannel returns the channel for one notification; mcp-go calls it
// for each. After the answer it returns nil, so that mcp-go's send gives up.
func (req *request) NotificationChannel() chan<- mcp.JSONRPCNotification {
	req.mu.Lock()
	if req.sendingEnded() {
		req.mu.Unlock()
		return nil
	}
	if req.notifier == nil {
		req.notifier = &pump{
			ch:    make(chan mcp.JSONRPCNotification, pumpSize),
			room:  make(chan struct{}, 1),
			stop:  make(chan struct{}),
			ended: make(chan struct{}),
		}
		go req.carry(req.notifier)
	}
	p := req.notifier
	req.mu.Unlock()
	for len(p.ch) > pumpSize/2 {
		select {
		case <-p.ended:
			return nil
		case <-p.room:
		}
	}
	p.signal() // wakes the next waiting caller
	return p.ch
}

func (p *pump) signal() {
	select {
	case p.room <- struct{}{}:
	default:
	}
}

// carry writes notifications until stop is closed, and then the remaining ones.
func (req *request) carry(p *pump) {
	defer close(p.ended)
	if req.listen || req == req.conn.session {
		req.relay(p)
		return
	}
	for {
		select {
		case n := <-p.ch:
			req.write(n)
			p.signal()
		case <-p.stop:
			for {
				select {
				case n := <-p.ch:
					req.write(n)
				default:
					return
				}
			}
		}
	}
}

// relay is carry for a view that gets broadcasts: the sender does not wait for
// this client to read. A client that is far behind misses some notifications,
// but not which lists have changed.
func (req *request) relay(p *pump) {
	next, written := make(chan notice), make(chan struct{})
	go func() {
		defer close(written)
		for n := range next {
			req.tell(n)
		}
	}()
	var late backlog
	take := func(n mcp.JSONRPCNotification) {
		if one, ok := req.notice(n); ok {
			late.add(one)
		}
	}
	for stop := p.stop; ; {
		var out chan<- notice
		var first notice
		switch {
		case len(late.notices) > 0:
			out, first = next, late.notices[0]
		case stop == nil:
			close(next)
			<-written
			return
		}
		select {
		case n := <-p.ch:
			take(n)
			p.signal()
		case out <- first:
			late.shift()
		case <-stop:
			for stop = nil; len(p.ch) > 0; {
				take(<-p.ch)
			}
		}
	}
}

// A notice is a notification, encoded.
type notice struct {
	method string
	line   []byte
}

// noticeCost is the memory of a notice in addition to its line, in bytes.
const noticeCost = 128

// backlog holds the notices that wait for a client: about writeBacklog bytes,
// and at most one notice for each changed list.
type backlog struct {
	notices []notice
	bytes   int
}

func (b *backlog) add(n notice) {
	if strings.HasSuffix(n.method, "/list_changed") { // one notice of a changed list is enough
		if slices.ContainsFunc(b.notices, func(have notice) bool { return have.method == n.method }) {
			return
		}
	} else if b.bytes > writeBacklog {
		return
	}
	b.notices = append(b.notices, n)
	b.bytes += len(n.line) + noticeCost
}

func (b *backlog) shift() {
	b.bytes -= len(b.notices[0].line) + noticeCost
	b.notices[0] = notice{}
	b.notices = b.notices[1:]
}

func (req *request) write(n mcp.JSONRPCNotification) {
	if one, ok := req.notice(n); ok {
		req.tell(one)
	}
}

func (req *request) notice(n mcp.JSONRPCNotification) (notice, bool) {
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
		return notice{}, false
	}
	if string(params) == "{}" {
		params = nil
	}
	return notice{n.Method, jsonrpc.AppendNotification(nil, n.Method, params)}, true
}

func (req *request) tell(n notice) {
	if req.state.Load() == cancelled {
		return
	}
	req.conn.send(n.line)
	if req.listen && n.method == mcp.MethodNotificationSubscriptionsAcknowledged {
		req.mu.Lock()
		req.hasAck = true
		if req.acked != nil {
			close(req.acked)
		}
		req.mu.Unlock()
	}
}

// Acknowledged returns a channel that is closed once the listen stream of ctx's
// request has been acknowledged, which must be its first message. For a request
// that did not come over ServeStdio it returns nil, which never becomes
// readable. Call it once a request.
func Acknowledged(ctx context.Context) <-chan struct{} {
	req := requestOf(ctx)
	if req == nil {
		return nil
	}
	req.mu.Lock()
	defer req.mu.Unlock()
	req.acked = make(chan struct{})
	if req.hasAck {
		close(req.acked)
	}
	return req.acked
}

// endSending closes the view for sending: it returns once earlier notifications have
// been written; later ones are dropped.
func (req *request) endSending() {
	req.mu.Lock()
	req.ended = true
	p := req.notifier
	req.mu.Unlock()
	if p != nil {
		close(p.stop)
		<-p.ended
	}
}
