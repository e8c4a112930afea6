package mcpkit

import (
	"context"
	"encoding/json"
	"maps"

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

func (v *view) write(n mcp.JSONRPCNotification) {
	if v.state.Load() == cancelled {
		return
	}
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
		return
	}
	if string(params) == "{}" {
		params = nil
	}
	v.conn.send(jsonrpc.AppendNotification(nil, n.Method, params))
	if v.listen && n.Method == mcp.MethodNotificationSubscriptionsAcknowledged {
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
