// Package egress lets a command that has no network reach listed hosts, and
// these alone, through a proxy that the server runs for it.
//
//	allow, err := egress.Parse("registries,example.com,*.example.org:8443")
//	proxy := egress.Start(egress.Config{Allow: allow}, listener)
//	…
//	proxy.Close()
//	hosts, more := proxy.Refused()
//
// # The list
//
// An entry is a host, or *. and a host, which stands for every name below it
// but not for the host itself. It may name a port; without one it stands for
// 80 and 443. Names are ASCII: an international name is given in its xn--
// form. Upper case and one trailing dot mean nothing. The entry "registries"
// stands for the hosts that packages come from (registries.go).
//
// An address is reached as a host only where that very address is listed; it
// is written in its usual form (1.2.3.4, [2001:db8::1]). Numbers that some
// programs take for addresses (127.1, 0x7f.1, 2130706433) are refused in the
// list and in requests.
//
// # Where connections go
//
// A name is resolved once for each request, by the server, and the connection
// goes to what came of it, so that a second answer changes nothing. Only
// public addresses are dialled: none that is private, shared, loopback,
// link-local, multicast, reserved, translated (mapped, NAT64, 6to4, Teredo) or
// this machine's own. An entry that gives such an address with its port, as
// 10.1.2.3:443, opens just that; also a listed name that resolves to it may
// then be used. An address alone does not, nor does localhost. Link-local
// addresses and those where clouds hand out credentials cannot be opened.
//
// # What passes
//
// One request a connection: CONNECT, or another method with a whole http URL.
// A plain request is taken apart and written anew, with exactly one Host
// (which must have been the URL's), one framing of its body and without
// headers that concern the proxy alone. Its answer likewise.
//
// What a CONNECT carries is not decrypted, but it must begin as TLS and ask
// for the host that CONNECT named (SNI), so that an allowed front does not
// serve another host. TLS without a name passes where the host is an address,
// which SNI cannot carry. Where an entry itself names a port other than 443,
// what is not TLS passes, too, and so does TLS without a name: it may be ssh.
// Encrypted client hellos show their outer name, which is what is compared.
//
// A redirect is the client's own next request.
//
// # Not kept
//
// Whoever runs an allowed host can be told everything a command may read, and
// several of the registries take uploads from anybody.
package egress

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Net is what a --net flag says of the network.
type Net struct {
	// On is the network as the server itself has it.
	On bool
	// Allow are the hosts that may be reached; nil stands for none.
	Allow *Allow
}

// ParseNet reads the value of a --net flag: off, on, registries or
// allow=HOST[:PORT],….
func ParseNet(value string) (Net, error) {
	switch list, isList := strings.CutPrefix(value, "allow="); {
	case isList:
		allow, err := Parse(list)
		return Net{Allow: allow}, err
	case value == "off":
		return Net{}, nil
	case value == "on":
		return Net{On: true}, nil
	case value == registriesEntry:
		allow, err := Parse(value)
		return Net{Allow: allow}, err
	}
	return Net{}, toolerr.New(toolerr.InvalidParams, "--net %.100q is unknown: use off, on, registries or allow=HOST[:PORT],…", value)
}

// String is the flag's value.
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
