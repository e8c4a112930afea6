package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// host is a host name or an IP address, in a normal form: equal hosts are equal
// values.
type host struct {
	name string     // lower case, without a trailing dot; "" for an address
	addr netip.Addr // no mapped one, and without a zone
}

func (h host) String() string {
	if h.name == "" {
		return h.addr.String()
	}
	return h.name
}

// authority returns the host as in a URL, an IPv6 address in brackets, with the
// port unless it is defaultPort.
func (h host) authority(port, defaultPort uint16) string {
	text := h.String()
	if h.addr.Is6() {
		text = "[" + text + "]"
	}
	if port != defaultPort {
		text += ":" + strconv.Itoa(int(port))
	}
	return text
}

// longestName bounds the length of a name as text (RFC 1035, 2.3.4),
// longestLabel that of each of its labels.
const (
	longestName  = 253
	longestLabel = 63
)

// parseAuthority parses HOST or HOST:PORT. Without a port, port is 0. It
// refuses a user, percent-encoding and unusual forms of an address. The error
// continues a sentence about the text.
func parseAuthority(text string) (h host, port uint16, err error) {
	name := text
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return host{}, 0, errors.New("has no ] after its address")
		}
		name = text[:end+1]
	} else if at := strings.IndexByte(text, ':'); at >= 0 {
		if strings.Count(text, ":") > 1 {
			return host{}, 0, errors.New("has more than one colon: put an IPv6 address in brackets")
		}
		name = text[:at]
	}
	if rest := text[len(name):]; rest != "" {
		if port, err = parsePort(rest); err != nil {
			return host{}, 0, err
		}
	}
	h, err = parseHost(name)
	return h, port, err
}

// parsePort parses :PORT, a number from 1 to 65535 without a leading zero.
func parsePort(colonPort string) (uint16, error) {
	digits, ok := strings.CutPrefix(colonPort, ":")
	port, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || port == 0 || digits[0] == '0' { // ParseUint takes no sign
		return 0, errors.New("has no port from 1 to 65535 after its host")
	}
	return uint16(port), nil
}

// parseHost parses a host name, an IPv4 address, or an IPv6 address in
// brackets.
func parseHost(text string) (host, error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return host{}, errors.New("has no ] at the end of its address")
		}
		return parseIPv6(inner)
	}
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) >= 0 { // before ToLower, which has ASCII for some
		return host{}, errors.New("is not ASCII: give an international name in its xn-- form")
	}
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	switch {
	case name == "":
		return host{}, errors.New("is empty")
	case len(name) > longestName:
		return host{}, fmt.Errorf("is longer than %d characters", longestName)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return host{}, err
		}
	}
	// A name never ends so (RFC 3696, 2), and resolvers take what does for
	// an address in one of inet_aton's many forms.
	if isNumericLabel(labels[len(labels)-1]) {
		addr, err := netip.ParseAddr(name)
		if err != nil || !addr.Is4() || text != name {
			return host{}, errors.New("is a number, but not an IPv4 address in dotted form")
		}
		return host{addr: addr}, nil
	}
	return host{name: name}, nil
}

// parseIPv6 parses an IPv6 address without brackets. It refuses zones and
// IPv4-mapped addresses.
func parseIPv6(text string) (host, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil || !addr.Is6():
		return host{}, errors.New("has no IPv6 address in its brackets")
	case addr.Zone() != "":
		return host{}, errors.New("has a zone in its address")
	case addr.Is4In6():
		return host{}, errors.New("has an IPv4 address in IPv6 form: write it as IPv4")
	}
	return host{addr: addr}, nil
}

// checkLabel returns an error unless label, in lower case, may be a part of a
// host name.
func checkLabel(label string) error {
	if label == "" {
		return errors.New("has an empty part between its dots")
	}
	if len(label) > longestLabel {
		return fmt.Errorf("has a part longer than %d characters", longestLabel)
	}
	for i := range len(label) {
		switch c := label[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-' && i > 0 && i < len(label)-1:
		default:
			return fmt.Errorf("has %q at a place where host names cannot have it", c)
		}
	}
	return nil
}

// isNumericLabel reports whether a label consists of digits, or of 0x and
// hexadecimal digits.
func isNumericLabel(label string) bool {
	digits, set := label, "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits, set = hex, "0123456789abcdef"
	}
	return strings.Trim(digits, set) == ""
}
