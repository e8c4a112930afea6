package http

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// newTransport makes connections that only lead where they may. Names of a
// tool's own connections are resolved by it, and each address is looked at
// before it is connected to.
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

// guard says which addresses may be reached.
type guard struct {
	private  bool
	networks []netip.Prefix
}

func (g guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !isProxy(address) {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error { return g.check(address) }
	}
	return d.DialContext(ctx, network, address)
}

// isProxy reports whether an address is that of the environment's proxy.
func isProxy(address string) bool {
	for _, scheme := range []string{"http", "https"} {
		req, err := http.NewRequest(http.MethodGet, scheme+"://example.com/", nil)
		if err != nil {
			continue
		}
		proxy, err := http.ProxyFromEnvironment(req)
		if err != nil || proxy == nil {
			continue
		}
		port := proxy.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
		}
		if strings.EqualFold(address, net.JoinHostPort(proxy.Hostname(), port)) {
			return true
		}
	}
	return false
}

// check is called with each address before it is connected to.
func (g guard) check(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.allows(at.Addr())
}

func (g guard) allows(ip netip.Addr) error {
	ip = ip.WithZone("").Unmap()
	if slices.ContainsFunc(g.networks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	what, own := special(ip)
	if what == "" || own && g.private {
		return nil
	}
	how := "allow_private: true allows it"
	if !own {
		how = "only allow_private: [" + ip.String() + "] allows it"
	}
	return toolerr.New(toolerr.PolicyDenied, "the connection would lead to %s, %s; %s", ip, what, how)
}

// special says what an address is when it is not public, and whether it is one
// that a user's own network may have (the registries of special-purpose
// addresses at IANA).
func special(ip netip.Addr) (what string, own bool) {
	for _, s := range specials() {
		if netip.MustParsePrefix(s.prefix).Contains(ip) {
			return s.what, s.own
		}
	}
	if ip.Is6() && !netip.MustParsePrefix("2000::/3").Contains(ip) {
		return "a reserved address", false
	}
	return "", false
}

type specialRange struct {
	prefix, what string
	own          bool
}

func specials() []specialRange {
	return []specialRange{
		{"169.254.0.0/16", "a link-local address", false}, // where clouds give out credentials
		{"fe80::/10", "a link-local address", false},
		{"fd00:ec2::/32", "a cloud's metadata address", false},
		{"fd20:ce::/32", "a cloud's metadata address", false},
		{"100.100.100.200/32", "a cloud's metadata address", false},
		{"192.0.0.192/32", "a cloud's metadata address", false},
		{"168.63.129.16/32", "a cloud's metadata address", false},
		{"127.0.0.0/8", "a loopback address", true},
		{"::1/128", "a loopback address", true},
		{"10.0.0.0/8", "a private address", true},
		{"172.16.0.0/12", "a private address", true},
		{"192.168.0.0/16", "a private address", true},
		{"fc00::/7", "a private address", true},
		{"100.64.0.0/10", "a shared address", true},
		{"0.0.0.0/8", "no host's address", false},
		{"::/128", "no host's address", false},
		{"224.0.0.0/4", "a multicast address", false},
		{"240.0.0.0/4", "a reserved address", false},
		{"192.0.0.0/24", "a reserved address", false},
		{"192.0.2.0/24", "a documentation address", false},
		{"198.51.100.0/24", "a documentation address", false},
		{"203.0.113.0/24", "a documentation address", false},
		{"198.18.0.0/15", "a test network's address", false},
		{"192.88.99.0/24", "a translated address", false},
		{"64:ff9b::/32", "a translated address", false},
		{"2002::/16", "a translated address", false},
		{"2001::/23", "a reserved address", false},
		{"2001:db8::/32", "a documentation address", false},
		{"3fff::/20", "a documentation address", false},
	}
}

// checkHost looks at a host that is an address before anything is sent, since
// a proxy would not.
func (g guard) checkHost(host string) error {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
			return g.allows(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
		}
		return nil
	}
	return g.allows(ip)
}
