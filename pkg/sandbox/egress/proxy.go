package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// Config configures a proxy. Allow is required; every other zero field means the
// default in its comment.
type Config struct {
	Allow *Allow

	// Resolve finds the addresses of a name: the system's resolver, without
	// its search list.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to one address by TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Own are addresses that are never public: those of this machine.
	Own func() []netip.Addr

	// Shared bounds the connections of several proxies together, to its capacity and
	// one more of each; further ones wait. nil: each is bounded by itself.
	Shared chan struct{}

	Connections int           // at once, further ones wait: 64
	HeadTime    time.Duration // for a request's head, and the beginning of TLS: 30 s
	DialTime    time.Duration // for finding and reaching a host: 20 s
	IdleTime    time.Duration // without a byte either way: 5 min
}

func (c *Config) complete() {
	if c.Resolve == nil {
		// The dot disables the resolver's search list, so that exactly the
		// listed name is looked up.
		resolver := &net.Resolver{PreferGo: true}
		c.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return resolver.LookupNetIP(ctx, "ip", name+".")
		}
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		}
	}
	if c.Own == nil {
		c.Own = ownAddresses
	}
	if c.Connections <= 0 {
		c.Connections = 64
	}
	for _, t := range []struct {
		of    *time.Duration
		value time.Duration
	}{{&c.HeadTime, 30 * time.Second}, {&c.DialTime, 20 * time.Second}, {&c.IdleTime, 5 * time.Minute}} {
		if *t.of <= 0 {
			*t.of = t.value
		}
	}
}

func ownAddresses() []netip.Addr {
	var own []netip.Addr
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr())
		}
	}
	return own
}

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

// opening is the entry that would allow a host at a port, or "" if none may.
func (h host) opening(port uint16) string {
	switch {
	case entry{host: h, port: port}.check() != nil:
		return ""
	case (port == 80 || port == 443) && (h.name != "" || netguard.Classify(h.addr).Reach == netguard.Public):
		return h.authority(0, 0)
	}
	return h.authority(port, 0)
}

// maxAddresses bounds the addresses of a name that are tried.
const maxAddresses = 4

// dial resolves a host once and connects to an address of the answer.
func (p *Proxy) dial(h host, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.config.DialTime)
	defer cancel()
	addrs := []netip.Addr{h.addr}
	if h.name != "" {
		var err error
		if addrs, err = p.config.Resolve(ctx, h.name); err != nil || len(addrs) == 0 {
			return nil, unreached(h, "cannot be resolved", err)
		}
	}
	own := p.config.Own()
	var targets []netip.AddrPort
	why, opens := "", ""
	for _, addr := range addrs {
		to := netip.AddrPortFrom(addr.Unmap(), port)
		if kind := p.config.Allow.mayDial(to, own); kind == "" {
			targets = append(targets, to)
		} else if why == "" {
			why = "is " + kind
			if h.name != "" {
				why = "has " + kind + ", " + to.Addr().String()
			}
			// That a name leads to this machine is no reason to open it.
			if netguard.Classify(to.Addr()).Reach != netguard.Public && !to.Addr().IsLoopback() {
				opens = host{addr: to.Addr()}.opening(port)
			}
		}
	}
	if len(targets) == 0 {
		return nil, &refusal{asked: h.authority(port, 0), why: why, opens: opens}
	}
	// IPv4 first: a machine without IPv6 may let it run into nothing.
	slices.SortStableFunc(targets, func(a, b netip.AddrPort) int { return a.Addr().BitLen() - b.Addr().BitLen() })
	targets = targets[:min(len(targets), maxAddresses)]
	var failed error
	for i, to := range targets {
		conn, err := p.dialOne(ctx, to, len(targets)-i)
		if err == nil {
			if !p.hold(conn) {
				return nil, unreached(h, "cannot be reached", context.Canceled)
			}
			return conn, nil
		}
		failed = err
	}
	return nil, unreached(h, "cannot be reached", failed)
}

// dialOne leaves time for those that are still to be tried.
func (p *Proxy) dialOne(ctx context.Context, to netip.AddrPort, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return p.config.Dial(ctx, to)
}

// unreached is a host that is allowed and not there. It does not tell what the
// error does of the server's own network.
func unreached(h host, what string, err error) error {
	status, why := http.StatusBadGateway, ""
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &dns) && dns.IsTimeout:
		status, why = http.StatusGatewayTimeout, ": no answer in time"
	case dns != nil && dns.IsNotFound:
		why = ": no such host"
	case errors.As(err, &errno):
		why = ": " + errno.Error()
	}
	return &badRequest{status, fmt.Sprintf("%s %s%s", h, what, why)}
}

// answer says why a request was not served.
func (p *Proxy) answer(client *stream, q *request, err error) {
	status, reason, text := http.StatusBadRequest, "", err.Error()
	var no *refusal
	var wrong *badRequest
	switch {
	case errors.As(err, &no):
		// Clients show the reason where they do not show the text.
		status, reason, text = http.StatusForbidden, "Not allowed by --net", no.text()
		p.refuse(no)
	case errors.As(err, &wrong):
		if status = wrong.status; status >= http.StatusInternalServerError && q != nil {
			reason = text
		}
	default: // the connection ended, or said nothing
		return
	}
	if reason == "" {
		reason = http.StatusText(status)
	}
	if q != nil && q.method == http.MethodHead {
		text = ""
	} else {
		text = strings.ToValidUTF8(text, "?") + "\n"
	}
	fmt.Fprintf(client, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, reason, len(text), text)
}

// endGently ends a connection whose client may still be sending: what it sends
// is read for a moment, since an end with something unread would take from the
// client what it has not read itself.
func (s *stream) endGently() {
	s.CloseWrite()
	s.limit(time.Now().Add(time.Second))
	io.CopyN(io.Discard, s, 1<<20)
}
