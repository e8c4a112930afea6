package netguard_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/netguard"
)

// The cases are IANA's registries of special-purpose addresses, with the first,
// the last and a middle address of each range; the metadata addresses of
// clouds; and the neighbours of the ranges.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		reach     netguard.Reach
		what      string
		addresses string
	}{
		{netguard.Never, "metadata", `168.63.129.16 192.0.0.192 100.100.100.200 fd00:ec2::254 fd00:ec2::253 fd20:ce::254`},
		{netguard.Never, "link-local", `169.254.0.0 169.254.169.254 169.254.170.2 169.254.255.255 fe80::1 febf:ffff::1 fe80::1%eth0`},
		{netguard.Never, "no host", `0.0.0.0 0.1.2.3 0.255.255.255 ::`},
		{netguard.Never, "multicast", `224.0.0.1 239.255.255.255 ff00::1 ff02::1 ffff::1`},
		{netguard.Never, "reserved", `240.0.0.1 255.255.255.255`},
		{netguard.Never, "mapped", `::ffff:127.0.0.1 ::ffff:8.8.8.8`},
		{netguard.Never, "translated", `64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b::a9fe:a9fe 64:ff9b::1 64:ff9b::6440:1 64:ff9b::c000:c0 64:ff9b::a83f:8110
			64:ff9b:1::1 64:ff9b:1:ffff:ffff::1 64:ff9b:2::1 2002:7f00:1:: 2002:808:808::1 2001:0:1::1 2001:0:ffff:ffff::1 192.88.99.1 192.88.99.2`},
		{netguard.Special, "translated", `64:ff9b::808:808 64:ff9b::5db8:d70e`},
		{netguard.Private, "loopback", `127.0.0.1 127.255.255.255 ::1`},
		{netguard.Private, "private", `10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.1 192.168.255.255 fc00::1 fd12::1 fdff:ffff::1 fec0::1`},
		{netguard.Private, "shared", `100.64.0.0 100.127.255.255`},
		{netguard.Special, "documentation", `192.0.2.1 198.51.100.255 203.0.113.1 2001:db8::1 2001:db8:ffff::1 3fff::1 3fff:fff:ffff::1`},
		{netguard.Special, "test network", `198.18.0.1 198.19.255.255 2001:2::1`},
		{netguard.Special, "reserved", `192.0.0.0 192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.171 192.0.0.255 2001:1::1 2001:3::1 2001:4:112::1 2001:10::1
			2001:20::1 2001:30::1 2001:1ff:ffff::1 ::7f00:1 ::ffff:0:7f00:1 100::1 100:0:0:1::1 5f00::1 4000::1 8000::1`},
		{netguard.Public, "", `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.215.14 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17
			169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.31.196.1 192.52.193.1 192.88.98.255 192.88.100.0 192.167.255.255
			192.169.0.0 192.175.48.1 198.17.255.255 198.20.0.0 198.51.99.255 203.0.112.255 203.0.114.0 223.255.255.255
			2001:200::1 2001:db7:ffff::1 2001:db9::1 2003::1 2606:4700:4700::1111 2620:4f:8000::1 2a00:1450::1 3ffe::1 3fff:1000::1`},
	} {
		for _, text := range strings.Fields(c.addresses) {
			got := netguard.Classify(netip.MustParseAddr(text))
			require.Equal(t, c.reach, got.Reach, "%s: %+v", text, got)
			require.Contains(t, got.Name, c.what, text)
			require.Equal(t, c.reach == netguard.Public, got.Name == "", text)
		}
	}
	require.Equal(t, netguard.Never, netguard.Classify(netip.Addr{}).Reach)
}

func TestIsProxy(t *testing.T) {
	require.False(t, netguard.IsProxy("127.0.0.1:80"))
}
