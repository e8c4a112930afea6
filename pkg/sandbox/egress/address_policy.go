package egress

import (
	"net/netip"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// whyNotDial returns the reason why the proxy must not connect to an address,
// such as "a private address"; "" if it may. An entry with this address and
// port permits every class except netguard.Never. own are the addresses of this
// machine.
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
