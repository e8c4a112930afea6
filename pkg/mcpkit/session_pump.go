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

// pumpSize is how many notifications mcp-go may send before the first has
// been written. It drops what does not fit, so the channel is handed out only
// while it is at most half full.
const pumpSize = 256

// A pump carries the notifications that mcp-go sends for one view, which it
// will only put on a channel, to the writer. It is made when first needed: an
// eager one for each request cost 45 % of the rate at 64 in flight.
type pump struct {
	ch    chan mcp.JSONRPCNotification
	room  chan struct{} // a token for one of those who wait for room
	stop  chan struct{}
	ended chan struct{}
}

// NotificationChannel is asked for anew for each notification. After the
// answer it is nil, on which mcp-go's send gives up.
func (v *view) NotificationChannel() chan<- mcp.JSONRPCNotification {
	v.mu.Lock()
	if v.over() {
		v.mu.Unlock()
		return nil
	}
	if v.pump == nil {
		v.pump = &pump{
			ch:    make(chan mcp.JSONRPCNotification, pumpSize),
			room:  make(chan struct{}, 1),
			stop:  make(chan struct{}),
			ended: make(chan struct{}),
		}
		go v.carry(v.pump)
	}
	p := v.pump
	v.mu.Unlock()
	for len(p.ch) > pumpSize/2 {
		select {
		case <-p.ended:
			return nil
		case <-p.room:
		}
	}
	p.signal() // the next of those who wait
	return p.ch
}

func (p *pump) signal() {
	select {
	case p.room <- struct{}{}:
	default:
	}
}

// carry writes what comes until stop, and then what is left.
func (v *view) carry(p *pump) {
	defer close(p.ended)
	if v.listen || v == v.conn.self {
		v.relay(p)
		return
	}
	for {
		select {
		case n := <-p.ch:
			v.write(n)
			p.signal()
		case <-p.stop:
			for {
				select {
				case n := <-p.ch:
					v.write(n)
				default:
					return
				}
			}
		}
	}
}

// relay is carry for a view that is told what concerns many: whoever tells it
// does not wait for this client to read. Of what one that is far behind is told
// it misses some, but learns which lists have changed.
func (v *view) relay(p *pump) {
	next, written := make(chan notice), make(chan struct{})
	go func() {
		defer close(written)
		for n := range next {
			v.tell(n)
		}
	}()
	var late backlog
	take := func(n mcp.JSONRPCNotification) {
		if one, ok := v.notice(n); ok {
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

// A notice is a notification as it is written.
type notice struct {
	method string
	line   []byte
}

// noticeCost is what a notice takes beside its line.
const noticeCost = 128

// backlog is what a client is still to be told, at most writeBacklog beside one
// notice of each list that has changed.
type backlog struct {
	notices []notice
	bytes   int
}

func (b *backlog) add(n notice) {
	if strings.HasSuffix(n.method, "/list_changed") { // several say no more than one
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

func (v *view) write(n mcp.JSONRPCNotification) {
	if one, ok := v.notice(n); ok {
		v.tell(one)
	}
}

func (v *view) notice(n mcp.JSONRPCNotification) (notice, bool) {
	if v.listen {
		// Every message of the stream names it, by the id as it came.
		meta := maps.Clone(n.Params.Meta)
		if meta == nil {
			meta = make(map[string]any, 1)
		}
		meta[mcp.MetaKeySubscriptionID] = v.id
		n.Params.Meta = meta
	}
	params, err := json.Marshal(n.Params)
	if err != nil {
		v.conn.logf("cannot encode %s: %v", n.Method, err)
		return notice{}, false
	}
	if string(params) == "{}" {
		params = nil
	}
	return notice{n.Method, jsonrpc.AppendNotification(nil, n.Method, params)}, true
}

func (v *view) tell(n notice) {
	if v.state.Load() == cancelled {
		return
	}
	v.conn.send(n.line)
	if v.listen && n.method == mcp.MethodNotificationSubscriptionsAcknowledged {
		v.mu.Lock()
		v.hasAck = true
		if v.acked != nil {
			close(v.acked)
		}
		v.mu.Unlock()
	}
}

// Acknowledged returns a channel that is closed once the listen stream that
// ctx's request opens has been acknowledged, which must be its first message.
// It is nil, which is never closed, for a request that did not come over
// ServeStdio. Call it once.
func Acknowledged(ctx context.Context) <-chan struct{} {
	v := viewOf(ctx)
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.acked = make(chan struct{})
	if v.hasAck {
		close(v.acked)
	}
	return v.acked
}

// end closes the view for sending: what was sent before has been written when
// it returns, what comes later is dropped.
func (v *view) end() {
	v.mu.Lock()
	v.ended = true
	p := v.pump
	v.mu.Unlock()
	if p != nil {
		close(p.stop)
		<-p.ended
	}
}
