package supervise

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormatIPv6(t *testing.T) {
	for _, text := range []string{"::1", "::", "2606:4700::1111", "fe80::1:2:3:4", "::ffff:192.0.2.7", "1:2:3:4:5:6:7:8", "0:0:1::", "::1:0:0"} {
		address := netip.MustParseAddr(text)
		b := address.As16()
		got, err := netip.ParseAddrPort(formatIPv6(b[:], 443))
		require.NoError(t, err, "%s: %s", text, formatIPv6(b[:], 443))
		require.Equal(t, netip.AddrPortFrom(address.Unmap(), 443), got)
	}
}
