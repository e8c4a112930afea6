// Package egress lets a command that has no network reach listed hosts, and
// these alone, through a proxy that the server runs for it.
//
//	allow, err := egress.ParseAllow("registries,example.com,*.example.org:8443")
//	proxy := egress.Start(egress.Config{Allow: allow}, listener)
//	…
//	proxy.Close()
//	hosts, more := proxy.Refused()
//
// # The list
//
// An entry is a host, or *. and a host, which means every name below the host
// but not the host itself. It may name a port; without one it means 80 and 443.
// Names are ASCII: an international name is given in its xn-- form. Case and one
// trailing dot are ignored. The entry "registries" means the package registries'
// hosts (registries.go).
//
// A request for an address is allowed only if that address is listed, in its
// usual form (1.2.3.4, [2001:db8::1]). Numbers that some programs read as
// addresses (127.1, 0x7f.1, 2130706433) are refused in the list and in requests.
//
// # Where connections go
//
// The server resolves a name once for each request and connects to an address
// of that answer, so that a second DNS answer has no effect. It dials only
// public addresses: not private, shared, loopback, link-local, multicast,
// reserved or translated ones (mapped, NAT64, 6to4, Teredo), nor this machine's
// own. An entry that gives such an address with its port, as 10.1.2.3:443,
// opens that address and port; a listed name that resolves to it may then be
// used, too. An entry without a port does not open such an address, and neither
// does localhost. Link-local addresses and the clouds' credential addresses
// cannot be opened.
//
// # Forwarded traffic
//
// Each connection carries one request: CONNECT, or another method with a whole
// http URL. A plain request is parsed and written again, with exactly one Host
// (which must be the URL's), one framing of its body, and without headers for
// the proxy. Responses are treated alike.
//
// The data after CONNECT is not decrypted, but it must begin as TLS and ask for
// the host that CONNECT named (SNI), so that an allowed front server does not
// serve another host. TLS without a name passes if the host is an address, which
// SNI cannot carry. If an entry names a port other than 443, other protocols and
// TLS without a name pass, too: the entry may be for ssh. Of encrypted client
// hellos, the outer name is compared.
//
// A redirect is the client's own next request.
//
// # Limits
//
// The operator of an allowed host can receive everything that a command may
// read, and several of the registries take uploads from anybody.
package egress

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Net is the value of a --net flag.
type Net struct {
	// On gives commands the server's own network.
	On bool
	// Allow lists the hosts that may be reached; nil means none.
	Allow *Allow
}

// ParseNet parses the value of a --net flag: off, on, registries or
// allow=HOST[:PORT],…. It returns INVALID_PARAMS for any other value.
func ParseNet(value string) (Net, error) {
	switch list, isList := strings.CutPrefix(value, "allow="); {
	case isList:
		allow, err := ParseAllow(list)
		return Net{Allow: allow}, err
	case value == "off":
		return Net{}, nil
	case value == "on":
		return Net{On: true}, nil
	case value == registriesEntry:
		allow, err := ParseAllow(value)
		return Net{Allow: allow}, err
	}
	return Net{}, toolerr.New(toolerr.InvalidParams, "--net %.100q is unknown: use off, on, registries or allow=HOST[:PORT],…", value)
}

// String returns the value of the flag.
func (n Net) String() string {
	switch {
	case n.On:
		return "on"
	case n.Allow == nil:
		return "off"
	case n.Allow.String() == registriesEntry:
		return registriesEntry
	}
	return "allow=" + n.Allow.String()
}
