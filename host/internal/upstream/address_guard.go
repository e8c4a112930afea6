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

// addressGuard keeps a configured host name from leading to an address that the user
// did not intend. An address of this machine or of a private network that the URL
// contains, localhost, and names of local networks may be called. Every other name
// must lead to a public address, unless allow_private is set: otherwise the owner of
// the name could make the host call services of this machine or a cloud's metadata
// service. The check applies to the dialed address, so a name cannot change in
// between.
type addressGuard struct {
	host         string // of the configured URL
	allowPrivate bool   // private addresses are permitted
}

// dial connects to an address within connectTimeout. After the name was resolved, check
// must permit the address; otherwise dial returns its error. The address of a configured
// proxy is not checked.
func (g addressGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	// A proxy of the environment is the user's choice, too, and resolves names itself.
	// The name may be spelled differently than in the URL (IDNA).
	if !netguard.IsProxy(address) {
		d.Control = g.check
	}
	return d.DialContext(ctx, network, address)
}

// check returns an error for a private address that the configured host name must not lead
// to. It is the Control function of a net.Dialer, called with each resolved address before
// the connection.
func (g addressGuard) check(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap().WithZone("")
	literal, err := netip.ParseAddr(g.host)
	if err == nil && literal.Unmap().WithZone("") == ip { // the URL contains the address
		return nil
	}
	class := netguard.Classify(ip)
	switch {
	case class.Reach == netguard.Public, class.Reach != netguard.Never && g.allowPrivate:
		return nil
	case class.Reach == netguard.Never:
		return fmt.Errorf("%s resolves to %s, %s; give the address itself if that is intended", g.host, ip, class.Name)
	}
	return fmt.Errorf("%s resolves to %s, which is not a public address but %s; give the address itself, or set allow_private for this server", g.host, ip, class.Name)
}
