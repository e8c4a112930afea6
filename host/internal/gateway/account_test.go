package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

func TestAccount(t *testing.T) {
	for remote, want := range map[string]string{
		"127.0.0.1:80":             "http loopback",
		"127.9.9.9:81":             "http loopback",
		"[::1]:80":                 "http loopback",
		"[::ffff:127.0.0.1]:80":    "http loopback",
		"192.0.2.7:1":              "http 192.0.2.7",
		"192.0.2.7:2":              "http 192.0.2.7",
		"[::ffff:192.0.2.7]:2":     "http 192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:1": "http 2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::]:2":  "http 2001:db8:1:2::/64",
		"[fe80::1%eth0]:2":         "http fe80::/64",
		"@":                        "http @",
	} {
		require.Equal(t, want, gateway.Account(remote), remote)
	}
}
