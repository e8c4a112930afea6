package egress

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/netip"
	"time"
)

// Registries are the entries that "registries" stands for.
func Registries() []string { return registries[:] }

// Allows reports whether a host, as it may stand in a URL, may be asked for at
// a port.
func (a *Allow) Allows(name string, port uint16) bool {
	h, err := parseHost(name)
	if err != nil {
		return false
	}
	_, ok := a.entryFor(h, port)
	return ok
}

// ReadHead reads and understands the head of a request, and writes it anew.
func ReadHead(head []byte) (host string, port uint16, anew []byte, err error) {
	raw, err := readHead(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return "", 0, nil, err
	}
	q, err := parseHead(raw)
	if err != nil {
		return "", 0, nil, err
	}
	return q.host.String(), q.port, q.serverHead(), nil
}

// Canonical is an authority in the one form in which it is compared.
func Canonical(text string) (string, uint16, error) {
	h, port, err := parseAuthority(text)
	if err != nil {
		return "", 0, err
	}
	return h.String(), port, nil
}

// MayDial says why an address is refused, or "".
func MayDial(a *Allow, to netip.AddrPort, own ...netip.Addr) string { return a.whyNotDial(to, own) }

// NewStream is one connection of a request; touch is what the other does when
// it moves a byte.
func NewStream(conn net.Conn, idle time.Duration) (r io.Reader, touch func()) {
	s := &stream{Conn: conn, clock: newIdleClock(idle)}
	return s, s.clock.touch
}
