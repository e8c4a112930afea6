package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func parse(t testing.TB, list string) *egress.Allow {
	t.Helper()
	allow, err := egress.ParseAllow(list)
	require.NoError(t, err)
	return allow
}

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		list, host string
		port       uint16
		want       bool
	}{
		{"example.com", "example.com", 443, true},
		{"example.com", "example.com", 80, true},
		{"example.com", "example.com", 8080, false},
		{"example.com", "EXAMPLE.COM.", 443, true},
		{"EXAMPLE.Com.", "example.com", 443, true},
		{"example.com", "example.com..", 443, false},
		{"example.com", ".example.com", 443, false},
		{"example.com", "www.example.com", 443, false},
		{"example.com", "notexample.com", 443, false},
		{"example.com", "example.com.evil.com", 443, false},
		{"example.com", "example.com@evil.com", 443, false},
		{"example.com", "example.com:443", 443, false},
		{"example.com", "example.com%2eevil.com", 443, false},
		{"example.com", "example.com%00.evil.com", 443, false},
		{"example.com", "example.com\x00.evil.com", 443, false},
		{"example.com", "example.com#.evil.com", 443, false},
		{"example.com", `example.com\.evil.com`, 443, false},
		{"example.com", "example。com", 443, false}, // U+3002, which some take for a dot
		{"example.com", "еxample.com", 443, false}, // Cyrillic е
		{"example.com", "ＥXAMPLE.com", 443, false}, // U+FF25
		{"example.com", "ex\u00adample.com", 443, false},
		{"example.com", "example.com ", 443, false},
		{"example.com", "", 443, false},
		{"example.com", ".", 443, false},
		{"k.com", "\u212a.com", 443, false}, // the Kelvin sign, whose lower case is k
		{"example.com:8443", "example.com", 8443, true},
		{"example.com:8443", "example.com", 443, false},
		{"example.com,example.com:8443", "example.com", 443, true},
		{"*.example.com", "a.example.com", 443, true},
		{"*.example.com", "a.b.example.com", 443, true},
		{"*.example.com", "A.Example.COM.", 443, true},
		{"*.example.com", "example.com", 443, false},
		{"*.example.com", ".example.com", 443, false},
		{"*.example.com", "..example.com", 443, false},
		{"*.example.com", "aexample.com", 443, false},
		{"*.example.com", "a.example.com.evil.com", 443, false},
		{"*.example.com", "evil.com/a.example.com", 443, false},
		{"*.example.com", "*.example.com", 443, false},
		{"*.example.com", "evil.com\r\n.example.com", 443, false},
		{"*.example.com:22", "git.example.com", 22, true},
		{"*.example.com:22", "git.example.com", 443, false},
		{"xn--bcher-kva.example", "XN--BCHER-KVA.example", 443, true},
		{"my_host.example.com", "my_host.example.com", 443, true},
		{"intranet", "intranet", 443, true},
		{" example.com , example.org ", "example.org", 443, true},

		{"93.184.216.34", "93.184.216.34", 443, true},
		{"93.184.216.34", "93.184.216.34", 22, false},
		{"93.184.216.34", "93.184.216.034", 443, false},
		{"93.184.216.34", "93.184.216.34.", 443, false},
		{"93.184.216.34", "1572395042", 443, false},
		{"93.184.216.34", "0x5db8d822", 443, false},
		{"93.184.216.34", "93.184.55330", 443, false},
		{"93.184.216.34", "0135.184.216.34", 443, false},
		{"93.184.216.34", "[::ffff:93.184.216.34]", 443, false},
		{"93.184.216.34", "[::ffff:5db8:d822]", 443, false},
		{"example.com", "93.184.216.34", 443, false},
		{"127.0.0.1:8080", "127.0.0.1", 8080, true},
		{"127.0.0.1:8080", "127.1", 8080, false},
		{"127.0.0.1:8080", "0x7f.1", 8080, false},
		{"127.0.0.1:8080", "2130706433", 8080, false},
		{"127.0.0.1:8080", "localhost", 8080, false},
		{"127.0.0.1:8080", "127.0.0.1", 8081, false},
		{"[2606:2800:220:1::1]", "[2606:2800:0220:0001:0:0:0:1]", 443, true},
		{"[2606:2800:220:1::1]", "2606:2800:220:1::1", 443, false},
		{"[2606:2800:220:1::1]", "[2606:2800:220:1::1%25eth0]", 443, false},
		{"[2606:2800:220:1::1]:8443", "[2606:2800:220:1::1]", 8443, true},
		{"[2606:2800:220:1::1]", "[2606:2800:220:1::1", 443, false},
		{"[2606:2800:220:1::1]", "[2606:2800:220:1::1]]", 443, false},
	} {
		require.Equal(t, c.want, parse(t, c.list).Allows(c.host, c.port), "%s for %q at %d", c.list, c.host, c.port)
	}
	require.False(t, (*egress.Allow)(nil).Allows("example.com", 443))
}

func TestListsThatCannotBe(t *testing.T) {
	for list, why := range map[string]string{
		"":                                "empty entry",
		"a.com,,b.com":                    "empty entry",
		"a.com,":                          "empty entry",
		"bücher.example":                  "xn--",
		"example。com":                     "xn--",
		"https://example.com":             "its host alone",
		"example.com/path":                "its host alone",
		"user@example.com":                `'@'`,
		"example%2ecom":                   `'%'`,
		"exa mple.com":                    `' '`,
		"*":                               "*",
		"*.":                              "is empty",
		"*.com":                           "at least two parts",
		"a.*.com":                         "*",
		"*a.example.com":                  "*",
		"**.example.com":                  "*",
		"*.127.0.0.1":                     "before an address",
		"*.[2606::1]":                     "before an address",
		"-a.com":                          `'-'`,
		"a-.com":                          `'-'`,
		"a..com":                          "empty part",
		strings.Repeat("a", 64) + ".com":  "longer than 63",
		strings.Repeat("a.", 127) + "com": "longer than 253",
		"example.com:":                    "port",
		"example.com:0":                   "port",
		"example.com:080":                 "port",
		"example.com:+80":                 "port",
		"example.com:65536":               "port",
		"example.com:http":                "port",
		"example.com:80:80":               "brackets",
		"::1":                             "brackets",
		"[::1":                            "]",
		"[::1]8080":                       "port",
		"[1.2.3.4]":                       "no IPv6 address",
		"[::ffff:1.2.3.4]":                "write it as IPv4",
		"[fe80::1%eth0]":                  "zone",
		"127.1:80":                        "dotted form",
		"0x7f.1:80":                       "dotted form",
		"2130706433:80":                   "dotted form",
		"0x7f000001:80":                   "dotted form",
		"1.2.3":                           "dotted form",
		"1.2.3.256":                       "dotted form",
		"01.2.3.4":                        "dotted form",
		"1.2.3.4.":                        "dotted form",
		"1.2.3.4.5":                       "dotted form",
		"example.0x":                      "dotted form",
		"localhost":                       "127.0.0.1:PORT",
		"localhost:8080":                  "127.0.0.1:PORT",
		"LOCALHOST.":                      "127.0.0.1:PORT",
		"a.localhost":                     "127.0.0.1:PORT",
		"127.0.0.1":                       "127.0.0.1:443",
		"10.1.2.3":                        "its port as well",
		"[::1]":                           "[::1]:443",
		"[fd12::1]":                       "its port as well",
		"169.254.169.254:80":              "cannot be opened",
		"[fe80::1]:80":                    "cannot be opened",
		"[fd00:ec2::254]:80":              "cannot be opened",
		"168.63.129.16:80":                "cannot be opened",
		"100.100.100.200:80":              "cannot be opened",
		"0.0.0.0:80":                      "cannot be opened",
		"224.0.0.1:80":                    "cannot be opened",
		"[64:ff9b::7f00:1]:80":            "cannot be opened",
	} {
		_, err := egress.ParseAllow(list)
		require.ErrorContains(t, err, why, list)
		require.ErrorIs(t, err, toolerr.New(toolerr.InvalidParams, ""), list)
	}
	_, err := egress.ParseAllow(strings.TrimSuffix(strings.Repeat("a.com,", 1001), ","))
	require.ErrorContains(t, err, "1000")
}

func TestNetFlag(t *testing.T) {
	for value, want := range map[string]bool{"off": false, "on": false, "registries": true, "allow=a.com,*.b.com:22": true, "allow=registries,a.com": true} {
		net, err := egress.ParseNet(value)
		require.NoError(t, err)
		require.Equal(t, value, net.String())
		require.Equal(t, want, net.Allow != nil)
		require.Equal(t, value == "on", net.On)
	}
	for _, value := range []string{"", "ON", "allow", "allow=", "a.com", "registries,a.com", "none"} {
		_, err := egress.ParseNet(value)
		require.Error(t, err, value)
	}
}

// TestRegistries: each entry is well-formed, and none opens more than a host.
func TestRegistries(t *testing.T) {
	allow := parse(t, "registries")
	for _, text := range egress.Registries() {
		host, port, err := egress.Canonical(strings.TrimPrefix(text, "*."))
		require.NoError(t, err)
		if below := strings.HasPrefix(text, "*."); below {
			require.GreaterOrEqual(t, strings.Count(host, "."), 2, text)
			host = "de." + host
		}
		require.True(t, allow.Allows(host, 443), text)
		require.Equal(t, port == 0, allow.Allows(host, 80), text)
		require.False(t, allow.Allows(host, 22), text)
		require.False(t, allow.Allows(host+".evil.com", 443), text)
	}
	require.False(t, allow.Allows("example.com", 443))
	require.True(t, parse(t, "example.com,registries").Allows("example.com", 80))
}

func TestAddresses(t *testing.T) {
	allow := parse(t, "example.com,127.0.0.1:8080,10.1.2.3:443,[fd12::1]:443,[::1]:80")
	for text, why := range map[string]string{
		"93.184.216.34:443": "", "1.1.1.1:80": "", "[2606:4700::1111]:443": "", "172.32.0.1:80": "", "100.128.0.1:80": "",
		"127.0.0.1:8080": "", "10.1.2.3:443": "", "[fd12::1]:443": "", "[::1]:80": "",
		"127.0.0.1:80": "loopback", "127.9.9.9:8080": "loopback", "[::1]:443": "loopback", "10.1.2.3:80": "private",
		"10.0.0.1:443": "private", "172.16.0.1:443": "private", "172.31.255.255:443": "private", "192.168.1.1:443": "private",
		"[fd12::2]:443": "private", "[fc00::1]:443": "private", "[fec0::1]:443": "private", "100.64.0.1:443": "shared",
		"169.254.169.254:80": "link-local", "[fe80::1]:80": "link-local", "[fd00:ec2::254]:80": "metadata",
		"0.0.0.0:80": "no host", "0.1.2.3:80": "no host", "[::]:80": "no host", "224.0.0.1:80": "multicast", "[ff02::1]:80": "multicast",
		"255.255.255.255:80": "reserved", "240.0.0.1:80": "reserved",
		"[::ffff:127.0.0.1]:8080": "mapped", "[::ffff:93.184.216.34]:443": "mapped", "[::7f00:1]:80": "reserved",
		"[64:ff9b::7f00:1]:80": "translated", "[64:ff9b::808:808]:80": "translated", "168.63.129.16:80": "metadata", "192.0.0.192:80": "metadata", "[64:ff9b:1::1]:80": "translated", "[2002:7f00:1::]:80": "translated",
		"[2001:0:1::1]:80": "translated", "[2001:db8::1]:80": "documentation", "[3fff::1]:80": "documentation",
		"[2001:10::1]:80": "reserved", "[4000::1]:80": "reserved", "[100::1]:80": "reserved",
		"192.0.2.1:80": "documentation", "198.18.0.1:80": "test network", "192.0.0.1:80": "reserved", "8.8.8.8:443": "own",
		"[2606:4700::9%eth0]:80": "one link",
	} {
		got := egress.MayDial(allow, netip.MustParseAddrPort(text), netip.MustParseAddr("8.8.8.8"))
		if why == "" {
			require.Empty(t, got, text)
		} else {
			require.Contains(t, got, why, text)
		}
	}
	require.NotEmpty(t, egress.MayDial(allow, netip.AddrPort{}))
}
