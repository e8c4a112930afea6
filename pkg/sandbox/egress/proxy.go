package egress

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Proxy serves the clients of one listener.
type Proxy struct {
	config   Config
	listener net.Listener
	ctx      context.Context // ends with the proxy
	cancel   context.CancelFunc
	slots    chan struct{} // one for each connection
	first    chan struct{} // the one that is not shared
	tasks    sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	open    map[net.Conn]struct{}
	refused []Refusal
	more    int
}

// Start serves the connections of a listener. Close closes the listener.
func Start(c Config, listener net.Listener) *Proxy {
	c.complete()
	p := &Proxy{config: c, listener: listener, slots: make(chan struct{}, c.Connections), first: make(chan struct{}, 1), open: map[net.Conn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.tasks.Go(p.serve)
	return p
}

// Close ends the listener and all connections, and waits for their end.
func (p *Proxy) Close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.listener.Close()
	for conn := range p.open {
		conn.Close()
	}
	p.mu.Unlock()
	p.tasks.Wait()
}

func (p *Proxy) serve() {
	for {
		select {
		case p.slots <- struct{}{}:
		case <-p.ctx.Done():
			return
		}
		conn, err := p.listener.Accept()
		if err != nil {
			<-p.slots
			if errors.Is(err, net.ErrClosed) || p.ctx.Err() != nil {
				return
			}
			select { // no descriptors, or a connection that was given up
			case <-time.After(50 * time.Millisecond):
			case <-p.ctx.Done():
				return
			}
			continue
		}
		leave := p.share()
		p.tasks.Go(func() {
			defer func() { <-p.slots }()
			defer leave()
			if p.hold(conn) {
				defer p.drop(conn)
				p.handle(conn)
			}
		})
	}
}

// share waits until there may be one more of all connections, or the end.
func (p *Proxy) share() (leave func()) {
	if p.config.Shared == nil {
		return func() {}
	}
	from := p.first
	select {
	case p.first <- struct{}{}: // before what others want, too
	default:
		select {
		case p.first <- struct{}{}:
		case p.config.Shared <- struct{}{}:
			from = p.config.Shared
		case <-p.ctx.Done():
			return func() {}
		}
	}
	return func() { <-from }
}

// hold makes Close close conn; drop closes it now. Where the proxy is closed
// already, so is conn.
func (p *Proxy) hold(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return false
	}
	p.open[conn] = struct{}{}
	return true
}

func (p *Proxy) drop(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

// handle serves one connection, which is one request.
func (p *Proxy) handle(conn net.Conn) {
	client := &stream{Conn: conn, clock: newClock(p.config.IdleTime)}
	client.limit(time.Now().Add(p.config.HeadTime))
	defer client.endGently()
	reader := bufio.NewReader(client)
	head, err := readHead(reader)
	var q *request
	if err == nil {
		q, err = parseHead(head)
	}
	if err != nil {
		p.answer(client, q, err)
		return
	}
	client.limit(time.Time{})
	e, err := p.allowed(q)
	if err != nil {
		p.answer(client, q, err)
		return
	}
	conn, err = p.dial(q.host, q.port)
	if err != nil {
		p.answer(client, q, err)
		return
	}
	defer p.drop(conn)
	server := &stream{Conn: conn, clock: client.clock}
	if q.method == http.MethodConnect {
		p.tunnel(q, e, client, reader, server)
	} else {
		p.forward(q, client, reader, server)
	}
}

// allowed looks a request up in the list.
func (p *Proxy) allowed(q *request) (entry, error) {
	e, ok := p.config.Allow.find(q.host, q.port)
	if !ok {
		return entry{}, &refusal{asked: q.host.authority(q.port, 0), opens: q.host.opening(q.port), why: "is not on the list of allowed hosts"}
	}
	return e, nil
}
