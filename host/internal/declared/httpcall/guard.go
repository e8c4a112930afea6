package httpcall

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// newTransport returns a transport that connects only to permitted addresses. It
// resolves names itself, and checks each address before it connects.
func newTransport(c Config) *http.Transport {
	g := guard{private: c.Private, networks: c.Networks}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		MaxIdleConns:           8,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		ExpectContinueTimeout:  time.Second,
	}
	return t
}

// guard decides to which addresses a tool may connect.
type guard struct {
	private  bool
	networks []netip.Prefix
}

// dial connects to an address, unless the guard refuses it. It checks the resolved
// address; that of a configured proxy is not checked.
func (g guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !netguard.IsProxy(address) {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error { return g.checkAddress(address) }
	}
	return d.DialContext(ctx, network, address)
}

// checkAddress returns the error of checkIP for an address IP:PORT. The dialer calls it
// with each address before a connection.
func (g guard) checkAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.checkIP(at.Addr())
}

// checkIP returns POLICY_DENIED if the guard does not allow an address, else nil.
func (g guard) checkIP(ip netip.Addr) error {
	ip = ip.WithZone("").Unmap()
	if slices.ContainsFunc(g.networks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	class := netguard.Classify(ip)
	own := class.Reach == netguard.Private
	if class.Reach == netguard.Public || own && g.private {
		return nil
	}
	how := "allow_private: true allows it"
	if !own {
		how = "only allow_private: [" + ip.String() + "] allows it"
	}
	return toolerr.New(toolerr.PolicyDenied, "the connection would go to %s, %s; %s", ip, class.Name, how)
}

// checkHost returns the error of checkIP for a host that is an IP address or localhost,
// before the request is sent, because a proxy would not check it. For other names it
// returns nil.
func (g guard) checkHost(host string) error {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
			return g.checkIP(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
		}
		return nil
	}
	return g.checkIP(ip)
}
