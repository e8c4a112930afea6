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

// Proxy serves the clients of one listener. It is safe for concurrent use.
type Proxy struct {
	config       Config
	listener     net.Listener
	ctx          context.Context // ends with the proxy
	cancel       context.CancelFunc
	slots        chan struct{} // one for each connection
	unsharedSlot chan struct{} // the one that is not shared
	tasks        sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	openConns   map[net.Conn]struct{}
	refused     []Refusal
	moreRefused int
}

// Start serves the connections of a listener until Close, which also closes the
// listener.
func Start(c Config, listener net.Listener) *Proxy {
	c.setDefaults()
	p := &Proxy{config: c, listener: listener, slots: make(chan struct{}, c.Connections), unsharedSlot: make(chan struct{}, 1), openConns: map[net.Conn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.tasks.Go(p.serve)
	return p
}

// Close closes the listener and all connections, and waits until they are no
// longer used.
func (p *Proxy) Close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.listener.Close()
	for conn := range p.openConns {
		conn.Close()
	}
	p.mu.Unlock()
	p.tasks.Wait()
}

// serve accepts connections and handles each in a goroutine, until the proxy is
// closed.
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
		release := p.acquireShared()
		p.tasks.Go(func() {
			defer func() { <-p.slots }()
			defer release()
			if p.trackConn(conn) {
				defer p.closeConn(conn)
				p.serveConn(conn)
			}
		})
	}
}

// acquireShared waits until Config.Shared permits one more connection, or the
// proxy is closed. The caller must call release. The first connection of a
// proxy needs no permission, so that other proxies cannot lock it out.
func (p *Proxy) acquireShared() (release func()) {
	if p.config.Shared == nil {
		return func() {}
	}
	from := p.unsharedSlot
	select {
	case p.unsharedSlot <- struct{}{}: // before what others want, too
	default:
		select {
		case p.unsharedSlot <- struct{}{}:
		case p.config.Shared <- struct{}{}:
			from = p.config.Shared
		case <-p.ctx.Done():
			return func() {}
		}
	}
	return func() { <-from }
}

// trackConn makes Close close conn. If the proxy is closed already, it closes
// conn and returns false.
func (p *Proxy) trackConn(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return false
	}
	p.openConns[conn] = struct{}{}
	return true
}

// closeConn closes conn and undoes trackConn.
func (p *Proxy) closeConn(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.openConns, conn)
}

// serveConn serves one connection of a client, which carries one request. The
// caller closes conn.
func (p *Proxy) serveConn(conn net.Conn) {
	client := &stream{Conn: conn, clock: newIdleClock(p.config.IdleTime)}
	client.setFixedDeadline(time.Now().Add(p.config.HeadTime))
	defer client.closeWriteAndDrain()
	reader := bufio.NewReader(client)
	head, err := readHead(reader)
	var q *request
	if err == nil {
		q, err = parseHead(head)
	}
	if err != nil {
		p.answerError(client, q, err)
		return
	}
	client.setFixedDeadline(time.Time{})
	e, err := p.checkAllowed(q)
	if err != nil {
		p.answerError(client, q, err)
		return
	}
	conn, err = p.dial(q.host, q.port)
	if err != nil {
		p.answerError(client, q, err)
		return
	}
	defer p.closeConn(conn)
	server := &stream{Conn: conn, clock: client.clock}
	if q.method == http.MethodConnect {
		p.tunnel(q, e, client, reader, server)
	} else {
		p.forward(q, client, reader, server)
	}
}

// checkAllowed returns the entry of Config.Allow that allows the host and port
// of a request, or a *refusal.
func (p *Proxy) checkAllowed(q *request) (entry, error) {
	e, ok := p.config.Allow.entryFor(q.host, q.port)
	if !ok {
		return entry{}, &refusal{requested: q.host.authority(q.port, 0), allowEntry: q.host.entryToAllow(q.port), why: "is not on the list of allowed hosts"}
	}
	return e, nil
}
