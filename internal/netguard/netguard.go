// Package netguard classifies IP addresses for everything that must not
// connect to a private or special address by accident: the network proxy of
// confined commands, declared HTTP tools and the URLs of MCP servers.
//
// Sources: the special-purpose address registries at IANA (RFC 6890 and its
// successors), RFC 6052 and 8215 (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo),
// and the documented metadata addresses of cloud providers.
package netguard

import (
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
)

// Reach is the permission that an address needs.
type Reach int

const (
	Public  Reach = iota // needs no permission
	Private              // this machine or a network of the user
	Special              // reserved, documentation and test networks, NAT64 of a public address
	Never                // metadata, link-local, multicast, and addresses that hide another address
)

// Class describes an address. Name is a phrase for messages, such as "a private
// address"; "" for a public address.
type Class struct {
	Name  string
	Reach Reach
}

// Classify returns the class of an address, regardless of its zone. IPv4-mapped
// IPv6 addresses and the invalid address are Never: a caller that accepts
// mapped addresses passes addr.Unmap().
func Classify(addr netip.Addr) Class {
	if !addr.IsValid() {
		return Class{"an invalid address", Never}
	}
	addr = addr.WithZone("")
	for _, r := range ranges() {
		if !r.prefix.Contains(addr) {
			continue
		}
		if r.prefix == nat64 && Classify(embeddedIPv4(addr)).Reach == Public {
			return Class{r.class.Name, Special} // DNS64 creates such addresses for every IPv4 name
		}
		return r.class
	}
	return Class{}
}

// nat64 is the well-known prefix, which ends with the IPv4 address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// embeddedIPv4 returns the IPv4 address in the last four bytes of a NAT64
// address.
func embeddedIPv4(addr netip.Addr) netip.Addr {
	bytes := addr.As16()
	var v4 [4]byte
	binary.BigEndian.PutUint32(v4[:], binary.BigEndian.Uint32(bytes[12:]))
	return netip.AddrFrom4(v4)
}

// addressRange is a range of addresses that have the same class.
type addressRange struct {
	prefix netip.Prefix
	class  Class
}

// ranges returns all ranges. The first range that contains an address decides.
var ranges = sync.OnceValue(func() (all []addressRange) {
	for _, group := range []struct {
		class    Class
		prefixes string
	}{
		{Class{"a cloud's metadata address", Never}, "fd00:ec2::/32 fd20:ce::/32 100.100.100.200/32 192.0.0.192/32 168.63.129.16/32"},
		{Class{"a link-local address", Never}, "169.254.0.0/16 fe80::/10"}, // metadata of most clouds
		{Class{"no host's address", Never}, "0.0.0.0/8 ::/128"},
		{Class{"a multicast address", Never}, "224.0.0.0/4 ff00::/8"},
		{Class{"a reserved address", Never}, "240.0.0.0/4"},
		{Class{"a mapped address", Never}, "::ffff:0:0/96"},
		{Class{"a translated address", Never}, "64:ff9b::/96 64:ff9b:1::/48 64:ff9b::/32 2002::/16 2001::/32 192.88.99.0/24"},
		{Class{"a loopback address", Private}, "127.0.0.0/8 ::1/128"},
		{Class{"a private address", Private}, "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"},
		{Class{"a shared address", Private}, "100.64.0.0/10"},
		{Class{"a documentation address", Special}, "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"},
		{Class{"a test network's address", Special}, "198.18.0.0/15 2001:2::/48"},
		{Class{"a reserved address", Special}, "192.0.0.0/24 2001::/23"},
		{Class{}, "0.0.0.0/0 2000::/3"},
		{Class{"a reserved address", Special}, "::/0"},
	} {
		for _, text := range strings.Fields(group.prefixes) {
			all = append(all, addressRange{netip.MustParsePrefix(text), group.class})
		}
	}
	return all
})

// IsProxy reports whether address, HOST:PORT, is the proxy that the environment
// configures for http or https. A connection to it needs no check: the user
// chose its address, and it resolves names itself.
func IsProxy(address string) bool {
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

// IsLocalName reports whether a host name belongs to this machine or a local
// network: localhost, a name without a dot, or a name below one of the domains
// reserved for this (RFC 6761, 6762, 8375, and .internal of 2024). It returns
// false for an address.
func IsLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	if !strings.Contains(host, ".") {
		return true
	}
	for _, domain := range []string{".localhost", ".local", ".internal", ".home.arpa", ".lan", ".test"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}
