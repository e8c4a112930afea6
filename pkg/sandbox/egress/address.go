package egress

import (
	"net/netip"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// mayDial returns why a connection to an address is refused, or "". An entry
// with this address and port opens every class except netguard.Never.
func (a *Allow) mayDial(to netip.AddrPort, own []netip.Addr) string {
	addr := to.Addr()
	if !addr.IsValid() || addr.Zone() != "" {
		return "an address of one link"
	}
	k := netguard.Classify(addr)
	if k.Reach == netguard.Public {
		for _, o := range own {
			if o.Unmap() == addr {
				k.Name = "this machine's own address"
			}
		}
	}
	if k.Name == "" || k.Reach != netguard.Never && a.opens(to) {
		return ""
	}
	return k.Name
}
