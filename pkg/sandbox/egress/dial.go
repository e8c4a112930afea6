package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// maxAddresses bounds the addresses of one host that are tried.
const maxAddresses = 4

// dial resolves a host once and connects to an address of the answer, IPv4
// first. It returns a *refusal if no address may be used, and an httpError if
// none can be reached. The connection is tracked: closeConn closes it.
func (p *Proxy) dial(h host, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.config.DialTime)
	defer cancel()
	addrs := []netip.Addr{h.addr}
	if h.name != "" {
		var err error
		if addrs, err = p.config.Resolve(ctx, h.name); err != nil || len(addrs) == 0 {
			return nil, unreachableError(h, "cannot be resolved", err)
		}
	}
	own := p.config.OwnAddresses()
	var targets []netip.AddrPort
	why, opens := "", ""
	for _, addr := range addrs {
		to := netip.AddrPortFrom(addr.Unmap(), port)
		if kind := p.config.Allow.whyNotDial(to, own); kind == "" {
			targets = append(targets, to)
		} else if why == "" {
			why = "is " + kind
			if h.name != "" {
				why = "has " + kind + ", " + to.Addr().String()
			}
			// That a name leads to this machine is no reason to open it.
			if netguard.Classify(to.Addr()).Reach != netguard.Public && !to.Addr().IsLoopback() {
				opens = host{addr: to.Addr()}.entryToAllow(port)
			}
		}
	}
	if len(targets) == 0 {
		return nil, &refusal{requested: h.authority(port, 0), why: why, allowEntry: opens}
	}
	// IPv4 first: a machine without IPv6 may let it run into nothing.
	slices.SortStableFunc(targets, func(a, b netip.AddrPort) int { return a.Addr().BitLen() - b.Addr().BitLen() })
	targets = targets[:min(len(targets), maxAddresses)]
	var failed error
	for i, to := range targets {
		conn, err := p.dialAddress(ctx, to, len(targets)-i)
		if err == nil {
			if !p.trackConn(conn) {
				return nil, unreachableError(h, "cannot be reached", context.Canceled)
			}
			return conn, nil
		}
		failed = err
	}
	return nil, unreachableError(h, "cannot be reached", failed)
}

// dialAddress connects to one address. It uses only its share of the time until
// the deadline of ctx, so that attemptsLeft addresses, including this one, can
// be tried.
func (p *Proxy) dialAddress(ctx context.Context, to netip.AddrPort, attemptsLeft int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && attemptsLeft > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(attemptsLeft))
		defer cancel()
	}
	return p.config.Dial(ctx, to)
}

// unreachableError returns the error for an allowed host that cannot be
// resolved or reached. Its text leaves out what err says about the server's own
// network.
func unreachableError(h host, what string, err error) error {
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
	return &httpError{status, fmt.Sprintf("%s %s%s", h, what, why)}
}
