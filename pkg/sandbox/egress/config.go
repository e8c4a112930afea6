package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Config configures a proxy. Allow is required; the comment of every other
// field gives its default.
type Config struct {
	Allow *Allow

	// Resolve finds the addresses of a name: the system's resolver, without
	// its search list.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to one address by TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// OwnAddresses returns addresses that are never public: those of this
	// machine.
	OwnAddresses func() []netip.Addr

	// Shared bounds the connections of several proxies together, to its
	// capacity and one more of each; further ones wait. nil: each is bounded by
	// itself.
	Shared chan struct{}

	// Setting is the name of the setting with the allowed hosts: --net.
	Setting string
	// HowToAllow returns what a user does to allow an entry, to follow a colon: a
	// sentence with the flag --net.
	HowToAllow func(entry string) string

	// OnRefused is called for each different refusal, one at a time; nil: for none.
	OnRefused func(Refusal)

	Connections int           // at once, further ones wait: 64
	HeadTime    time.Duration // for a request's head, and the beginning of TLS: 30 s
	DialTime    time.Duration // for finding and reaching a host: 20 s
	IdleTime    time.Duration // without a byte either way: 5 min
}

// setDefaults sets the fields that are zero to the defaults that Config names.
// Allow has no default.
func (c *Config) setDefaults() {
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
	if c.OwnAddresses == nil {
		c.OwnAddresses = ownAddresses
	}
	if c.Setting == "" {
		c.Setting = "--net"
	}
	if c.HowToAllow == nil {
		c.HowToAllow = func(entry string) string {
			return fmt.Sprintf("start the server with --net allow=%s (in addition to the current list) or --net on to open it", entry)
		}
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

// ownAddresses returns the addresses of this machine's network interfaces.
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
