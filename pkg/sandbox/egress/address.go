package egress

import "net/netip"

// kind is what is special about an address; what is "" for a public one.
type kind struct {
	what  string
	never bool // also no entry opens it
}

// special are ranges that are not reached by chance (the registries of
// special-purpose addresses at IANA), the first that holds counts.
func special() []struct {
	prefix string
	kind
} {
	return []struct {
		prefix string
		kind
	}{
		// where clouds tell a machine who it is, with its credentials
		{"169.254.0.0/16", kind{"a link-local address", true}},
		{"fe80::/10", kind{"a link-local address", true}},
		{"fd00:ec2::/32", kind{"a cloud's metadata address", true}},
		{"fd20:ce::/32", kind{"a cloud's metadata address", true}},
		{"100.100.100.200/32", kind{"a cloud's metadata address", true}},
		{"192.0.0.192/32", kind{"a cloud's metadata address", true}},
		{"168.63.129.16/32", kind{"a cloud's metadata address", true}},

		{"0.0.0.0/8", kind{"no host's address", true}},
		{"::/128", kind{"no host's address", true}},
		{"224.0.0.0/4", kind{"a multicast address", true}},
		{"ff00::/8", kind{"a multicast address", true}},
		{"240.0.0.0/4", kind{"a reserved address", true}},
		{"::ffff:0:0/96", kind{"a mapped address", true}},
		{"64:ff9b::/96", kind{"a translated address", true}},
		{"64:ff9b:1::/48", kind{"a translated address", true}},
		{"2002::/16", kind{"a translated address", true}},
		{"2001::/32", kind{"a translated address", true}},
		{"192.88.99.0/24", kind{"a translated address", true}},

		{"127.0.0.0/8", kind{"a loopback address", false}},
		{"::1/128", kind{"a loopback address", false}},
		{"10.0.0.0/8", kind{"a private address", false}},
		{"172.16.0.0/12", kind{"a private address", false}},
		{"192.168.0.0/16", kind{"a private address", false}},
		{"fc00::/7", kind{"a private address", false}},
		{"fec0::/10", kind{"a private address", false}},
		{"100.64.0.0/10", kind{"a shared address", false}},
		{"192.0.0.0/24", kind{"a reserved address", false}},
		{"192.0.2.0/24", kind{"a documentation address", false}},
		{"198.51.100.0/24", kind{"a documentation address", false}},
		{"203.0.113.0/24", kind{"a documentation address", false}},
		{"2001:db8::/32", kind{"a documentation address", false}},
		{"3fff::/20", kind{"a documentation address", false}},
		{"198.18.0.0/15", kind{"a test network's address", false}},
		{"2001::/23", kind{"a reserved address", false}},
		{"2000::/3", kind{}},
		{"::/0", kind{"a reserved address", false}},
	}
}

// kindOf says what is special about an address.
func kindOf(addr netip.Addr) kind {
	for _, s := range special() {
		if netip.MustParsePrefix(s.prefix).Contains(addr) {
			return s.kind
		}
	}
	return kind{}
}

// mayDial says why a connection to an address is refused, or "".
func (a *Allow) mayDial(to netip.AddrPort, own []netip.Addr) string {
	addr := to.Addr()
	if !addr.IsValid() || addr.Zone() != "" {
		return "an address of one link"
	}
	k := kindOf(addr)
	if k.what == "" {
		for _, o := range own {
			if o.Unmap() == addr {
				k.what = "this machine's own address"
			}
		}
	}
	if k.what == "" || !k.never && a.opens(to) {
		return ""
	}
	return k.what
}
