package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxEntries bounds the entries of a list.
const maxEntries = 1000

// Allow is a list of allowed hosts. It is immutable. A nil Allow allows
// nothing.
type Allow struct {
	text    string
	entries []entry
}

// entry is an item of a list: the hosts and ports that it allows.
type entry struct {
	host       host
	subdomains bool   // the names below host, without host itself
	port       uint16 // 0: 80 and 443
}

// ParseAllow parses a list of entries that are separated by commas; the package
// comment describes the entries. It returns INVALID_PARAMS, which names the
// first invalid entry.
func ParseAllow(list string) (*Allow, error) {
	a := &Allow{}
	var texts []string
	for text := range strings.SplitSeq(list, ",") {
		text = strings.Trim(text, " \t")
		if text == "" {
			return nil, toolerr.New(toolerr.InvalidParams, "the list of allowed hosts has an empty entry: give HOST[:PORT],…")
		}
		if err := a.addEntry(text); err != nil {
			return nil, toolerr.New(toolerr.InvalidParams, "the allowed host %.300q %w", text, err)
		}
		texts = append(texts, text)
	}
	a.text = strings.Join(texts, ",")
	return a, nil
}

// String returns the list as ParseAllow reads it; "" for nil.
func (a *Allow) String() string {
	if a == nil {
		return ""
	}
	return a.text
}

// addEntry parses an entry and adds it, or the entries of "registries". The
// error continues a sentence about the entry: "is a URL".
func (a *Allow) addEntry(text string) error {
	if text == registriesEntry {
		for _, entry := range registries {
			if err := a.addEntry(entry); err != nil {
				return fmt.Errorf("contains %q, which %w", entry, err)
			}
		}
		return nil
	}
	if len(a.entries) == maxEntries {
		return fmt.Errorf("exceeds the limit of %d entries", maxEntries)
	}
	name, below := strings.CutPrefix(text, "*.")
	switch {
	case strings.Contains(name, "*"):
		return fmt.Errorf("has a * that is not the whole first label, as in *.example.com")
	case strings.Contains(name, "://"), strings.Contains(name, "/"):
		return fmt.Errorf("is a URL: give its host alone")
	}
	h, port, err := parseAuthority(name)
	if err != nil {
		return err
	}
	e := entry{host: h, subdomains: below, port: port}
	if err := e.validate(); err != nil {
		return err
	}
	a.entries = append(a.entries, e)
	return nil
}

// validate returns an error for an entry that cannot work, or would allow more
// than the user means. The error continues a sentence about the entry.
func (e entry) validate() error {
	switch {
	case e.subdomains && e.host.name == "":
		return fmt.Errorf("has a * before an address")
	case e.subdomains && !strings.Contains(e.host.name, "."):
		return fmt.Errorf("would open everything below .%s: give at least two parts after the *", e.host)
	case e.host.name == "localhost", strings.HasSuffix(e.host.name, ".localhost"):
		return fmt.Errorf("is this machine: to allow one of its ports, give 127.0.0.1:PORT")
	case e.host.name != "":
		return nil
	}
	switch class := netguard.Classify(e.host.addr); {
	case class.Reach == netguard.Never:
		return fmt.Errorf("is %s, which cannot be opened", class.Name)
	case class.Reach != netguard.Public && e.port == 0:
		return fmt.Errorf("is %s: give its port as well, as in %s", class.Name, e.host.authority(443, 0))
	}
	return nil
}

// entryFor returns the entry that allows a host at a port. An entry that names
// the port takes precedence. ok is false if no entry allows the host.
func (a *Allow) entryFor(h host, port uint16) (found entry, ok bool) {
	if a == nil {
		return entry{}, false
	}
	for _, exact := range []bool{true, false} {
		i := slices.IndexFunc(a.entries, func(e entry) bool {
			if e.port == 0 {
				return !exact && (port == 80 || port == 443) && e.matchesHost(h)
			}
			return exact && e.port == port && e.matchesHost(h)
		})
		if i >= 0 {
			return a.entries[i], true
		}
	}
	return entry{}, false
}

// matchesHost reports whether the entry is for the host h or, with *, for names
// below which h is. The port does not matter.
func (e entry) matchesHost(h host) bool {
	if e.subdomains {
		return strings.HasSuffix(h.name, "."+e.host.name)
	}
	return e.host == h
}

// listsAddress reports whether an entry is exactly the address to with its
// port.
func (a *Allow) listsAddress(to netip.AddrPort) bool {
	return slices.ContainsFunc(a.entries, func(e entry) bool {
		return e.host.addr == to.Addr() && e.port == to.Port()
	})
}

// entryToAllow returns the text of the entry that would allow h at port; "" if
// no entry can.
func (h host) entryToAllow(port uint16) string {
	switch {
	case entry{host: h, port: port}.validate() != nil:
		return ""
	case (port == 80 || port == 443) && (h.name != "" || netguard.Classify(h.addr).Reach == netguard.Public):
		return h.authority(0, 0)
	}
	return h.authority(port, 0)
}
