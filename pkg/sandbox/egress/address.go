package egress

import (
	"net/netip"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// whyNotDial returns why a connection to an address is refused, or "". An entry
// with this address and port opens every class except netguard.Never.
func (a *Allow) whyNotDial(to netip.AddrPort, own []netip.Addr) string {
	addr := to.Addr()
	if !addr.IsValid() || addr.Zone() != "" {
		return "an address of one link"
	}
	class := netguard.Classify(addr)
	if class.Reach == netguard.Public {
		for _, o := range own {
			if o.Unmap() == addr {
				class.Name = "this machine's own address"
			}
		}
	}
	if class.Name == "" || class.Reach != netguard.Never && a.listsAddress(to) {
		return ""
	}
	return class.Name
}
