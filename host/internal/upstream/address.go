package upstream

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// addressGuard keeps a configured name from leading where its owner did not
// mean to go. What the user wrote is the user's will: an address of this
// machine or of a private network that the URL spells out, localhost, and
// names of local networks may be called. Any other name must lead to a public
// address, or allow_private is set: else whoever controls the name could have
// the host call the services of this machine or a cloud's metadata. The check
// is made on the address that is dialled, so a name cannot change in between.
type addressGuard struct {
	host    string // as configured
	private bool   // whether it may lead to a private address
}

func (g addressGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	// A proxy of the environment is the user's will, too, and resolves for us.
	// The name may be spelled in other ways than in the URL (IDNA).
	if !netguard.IsProxy(address) {
		d.Control = g.check
	}
	return d.DialContext(ctx, network, address)
}

// check is called with each address before it is connected to.
func (g addressGuard) check(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap().WithZone("")
	literal, err := netip.ParseAddr(g.host)
	if err == nil && literal.Unmap().WithZone("") == ip { // spelled out
		return nil
	}
	class := netguard.Classify(ip)
	switch {
	case class.Reach == netguard.Public, class.Reach != netguard.Never && g.private:
		return nil
	case class.Reach == netguard.Never:
		return fmt.Errorf("%s resolves to %s, %s; give the address itself if that is intended", g.host, ip, class.Name)
	}
	return fmt.Errorf("%s resolves to %s, which is not a public address but %s; give the address itself, or set allow_private for this server", g.host, ip, class.Name)
}
