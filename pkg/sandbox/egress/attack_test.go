package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
)

const (
	plainList = "example.com,*.example.com,93.184.216.34,127.0.0.1:8080"
	toServer  = " HTTP/1.1\r\nHost: example.com\r\n"
)

// TestAttacks: none of these makes the proxy connect anywhere, and each that
// asks for a host is remembered.
func TestAttacks(t *testing.T) {
	w := newInternet(t)
	for name, c := range map[string]struct {
		text string
		want int
	}{
		// hosts that only look allowed
		"other host":            {"GET http://other.com/ HTTP/1.1\r\nHost: other.com\r\n\r\n", 403},
		"allowed before @":      {"GET http://example.com@other.com/ HTTP/1.1\r\nHost: other.com\r\n\r\n", 403},
		"allowed as a user":     {"GET http://example.com:80@other.com/ HTTP/1.1\r\nHost: other.com\r\n\r\n", 403},
		"user before allowed":   {"GET http://user:pass@example.com/" + toServer + "\r\n", 403},
		"allowed as a label":    {"CONNECT example.com.other.com:443 HTTP/1.1\r\n\r\n", 403},
		"other after backslash": {`GET http://example.com\@other.com/` + toServer + "\r\n", 403},
		"backslash":             {`GET http:\\example.com/` + toServer + "\r\n", 400},
		"percent in the host":   {"GET http://example%2ecom/" + toServer + "\r\n", 403},
		"percent at the end":    {"GET http://example.com%2eother.com/" + toServer + "\r\n", 403},
		"percent NUL":           {"GET http://example.com%00.other.com/" + toServer + "\r\n", 403},
		"NUL":                   {"GET http://example.com\x00.other.com/" + toServer + "\r\n", 400},
		"unicode":               {"CONNECT ex\u0430mple.com:443 HTTP/1.1\r\n\r\n", 400},
		"fragment":              {"GET http://example.com#@other.com/" + toServer + "\r\n", 400},
		"no host":               {"GET http:///path HTTP/1.1\r\nHost: \r\n\r\n", 403},
		"empty port":            {"GET http://example.com:/" + toServer + "\r\n", 403},
		"another port":          {"GET http://example.com:8080/ HTTP/1.1\r\nHost: example.com:8080\r\n\r\n", 403},
		"port too high":         {"CONNECT example.com:65979 HTTP/1.1\r\n\r\n", 403}, // 443 + 65536
		"port in octal":         {"CONNECT example.com:0443 HTTP/1.1\r\n\r\n", 403},
		"two ports":             {"CONNECT example.com:443:22 HTTP/1.1\r\n\r\n", 403},
		"double dot":            {"CONNECT example.com..:443 HTTP/1.1\r\n\r\n", 403},

		// addresses
		"loopback":                  {"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", 403},
		"127.1":                     {"CONNECT 127.1:8080 HTTP/1.1\r\n\r\n", 403},
		"0x7f.1":                    {"CONNECT 0x7f.1:8080 HTTP/1.1\r\n\r\n", 403},
		"0x7f000001":                {"CONNECT 0x7f000001:8080 HTTP/1.1\r\n\r\n", 403},
		"decimal":                   {"CONNECT 2130706433:8080 HTTP/1.1\r\n\r\n", 403},
		"octal":                     {"CONNECT 0177.0.0.1:8080 HTTP/1.1\r\n\r\n", 403},
		"zero":                      {"CONNECT 0:8080 HTTP/1.1\r\n\r\n", 403},
		"0.0.0.0":                   {"CONNECT 0.0.0.0:8080 HTTP/1.1\r\n\r\n", 403},
		"loopback in IPv6":          {"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", 403},
		"mapped loopback":           {"CONNECT [::ffff:127.0.0.1]:8080 HTTP/1.1\r\n\r\n", 403},
		"mapped in hexadecimal":     {"CONNECT [::ffff:7f00:1]:8080 HTTP/1.1\r\n\r\n", 403},
		"mapped allowed":            {"CONNECT [::ffff:93.184.216.34]:443 HTTP/1.1\r\n\r\n", 403},
		"NAT64":                     {"CONNECT [64:ff9b::7f00:1]:8080 HTTP/1.1\r\n\r\n", 403},
		"zone":                      {"CONNECT [fe80::1%25eth0]:443 HTTP/1.1\r\n\r\n", 403},
		"metadata":                  {"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", 403},
		"localhost":                 {"CONNECT localhost:8080 HTTP/1.1\r\n\r\n", 403},
		"name of loopback":          {"CONNECT loop.example.com:443 HTTP/1.1\r\n\r\n", 403},
		"name of a private address": {"CONNECT private.example.com:443 HTTP/1.1\r\n\r\n", 403},
		"name of metadata":          {"GET http://metadata.example.com/ HTTP/1.1\r\nHost: metadata.example.com\r\n\r\n", 403},
		"name of a mapped address":  {"CONNECT mapped.example.com:443 HTTP/1.1\r\n\r\n", 403},
		"name of NAT64":             {"CONNECT nat64.example.com:443 HTTP/1.1\r\n\r\n", 403},

		// requests with two meanings
		"origin form":             {"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 400},
		"asterisk":                {"OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n", 400},
		"https without CONNECT":   {"GET https://example.com/" + toServer + "\r\n", 400},
		"ftp":                     {"GET ftp://example.com/" + toServer + "\r\n", 400},
		"CONNECT to a URL":        {"CONNECT http://example.com/ HTTP/1.1\r\n\r\n", 403},
		"CONNECT without a port":  {"CONNECT example.com HTTP/1.1\r\n\r\n", 400},
		"Host differs":            {"GET http://example.com/ HTTP/1.1\r\nHost: other.com\r\n\r\n", 403},
		"Host's port differs":     {"GET http://example.com/ HTTP/1.1\r\nHost: example.com:8080\r\n\r\n", 403},
		"Host with a user":        {"GET http://example.com/ HTTP/1.1\r\nHost: x@example.com\r\n\r\n", 403},
		"Host of CONNECT differs": {"CONNECT example.com:443 HTTP/1.1\r\nHost: other.com:443\r\n\r\n", 403},
		"no Host":                 {"GET http://example.com/ HTTP/1.1\r\n\r\n", 400},
		"two Hosts":               {"GET http://example.com/" + toServer + "Host: other.com\r\n\r\n", 400},
		"the same Host twice":     {"GET http://example.com/" + toServer + "host: example.com\r\n\r\n", 400},
		"Host continued":          {"GET http://example.com/ HTTP/1.1\r\nHost:\r\n example.com\r\n\r\n", 400},
		"space before the colon":  {"GET http://example.com/ HTTP/1.1\r\nHost : example.com\r\n\r\n", 400},
		"space before the name":   {"GET http://example.com/" + toServer + " X: y\r\n\r\n", 400},
		"no colon":                {"GET http://example.com/" + toServer + "Content-Length\r\n\r\n", 400},
		"bare line feeds":         {"GET http://example.com/ HTTP/1.1\nHost: example.com\n\n", 400},
		"a bare line feed":        {"GET http://example.com/ HTTP/1.1\nHost: example.com\r\n\r\n", 400},
		"a bare CR":               {"GET http://example.com/" + toServer + "X: y\rHost: other.com\r\n\r\n", 400},
		"NUL in a header":         {"GET http://example.com/" + toServer + "X: \x00\r\n\r\n", 400},
		"length and chunks":       {"POST http://example.com/" + toServer + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"two lengths":             {"POST http://example.com/" + toServer + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
		"the same length twice":   {"POST http://example.com/" + toServer + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
		"lengths in one":          {"POST http://example.com/" + toServer + "Content-Length: 5, 5\r\n\r\n", 400},
		"signed length":           {"POST http://example.com/" + toServer + "Content-Length: +5\r\n\r\n", 400},
		"negative length":         {"POST http://example.com/" + toServer + "Content-Length: -1\r\n\r\n", 400},
		"hexadecimal length":      {"POST http://example.com/" + toServer + "Content-Length: 0x5\r\n\r\n", 400},
		"endless length":          {"POST http://example.com/" + toServer + "Content-Length: 9223372036854775808\r\n\r\n", 400},
		"empty length":            {"POST http://example.com/" + toServer + "Content-Length:\r\n\r\n", 400},
		"another coding":          {"POST http://example.com/" + toServer + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
		"obscured coding":         {"POST http://example.com/" + toServer + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400},
		"Kelvin's coding":         {"POST http://example.com/" + toServer + "Transfer-Encoding: chun\u212aed\r\n\r\n0\r\n\r\n", 400},
		"chunks in 1.0":           {"POST http://example.com/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"CONNECT with a body":     {"CONNECT example.com:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 400},
		"CONNECT with chunks":     {"CONNECT example.com:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"a space in the URL":      {"GET http://example.com/ /other" + toServer + "\r\n", 400},
		"two spaces":              {"GET  http://example.com/" + toServer + "\r\n", 400},
		"a tab":                   {"GET\thttp://example.com/\tHTTP/1.1\r\nHost: example.com\r\n\r\n", 400},
		"no version":              {"GET http://example.com/\r\n\r\n", 400},
		"HTTP/2":                  {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		"HTTP/1.10":               {"GET http://example.com/ HTTP/1.10\r\nHost: example.com\r\n\r\n", 505},
		"an empty line first":     {"\r\nGET http://example.com/" + toServer + "\r\n", 400},
		"a long method":           {strings.Repeat("G", 100) + " http://example.com/" + toServer + "\r\n", 400},
		"TLS to the proxy":        {"\x16\x03\x01\x00\x05hello\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			p, address := w.proxy(t, plainList)
			answer := talk(t, address, c.text)
			require.Equal(t, c.want, status(answer), answer)
			require.Contains(t, answer, "Connection: close\r\n")
			require.Empty(t, w.takeDialed())
			hosts, more := p.Refused()
			require.Zero(t, more)
			if c.want == 403 {
				require.Len(t, hosts, 1)
				require.NotEmpty(t, hosts[0].Why)
				require.NotRegexp(t, `[^!-~]`, hosts[0].Host)
				require.Contains(t, answer, "--net")
				if opens := hosts[0].Opens; opens != "" {
					_, port, err := egress.Canonical(hosts[0].Host)
					require.NoError(t, err)
					host := strings.TrimSuffix(hosts[0].Host, ":"+strconv.Itoa(int(port)))
					require.True(t, parse(t, opens).Allows(host, port) || strings.HasPrefix(name, "name of a private"))
				}
			} else {
				require.Empty(t, hosts)
			}
		})
	}
	require.Empty(t, w.heads)
}

// TestOneRequestAConnection: what follows a request reaches nobody.
func TestOneRequestAConnection(t *testing.T) {
	second := "GET http://example.com/second" + toServer + "\r\n"
	for name, text := range map[string]string{
		"pipelined":    "GET http://example.com/" + toServer + "\r\n" + second,
		"after a body": "POST http://example.com/" + toServer + "Content-Length: 5\r\n\r\nhello" + second,
		"after chunks": "POST http://example.com/" + toServer + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + second,
		"as a trailer": "POST http://example.com/" + toServer + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHost: other.com\r\n\r\n" + second,
		"in extensions": "POST http://example.com/" + toServer + "Transfer-Encoding: chunked\r\n\r\n5;" +
			"x=\"GET / HTTP/1.1\"\r\nhello\r\n0;y\r\n\r\n" + second,
	} {
		w := newInternet(t)
		var got []byte
		done := make(chan struct{})
		w.raw(t, 80, func(conn net.Conn) {
			reader := bufio.NewReader(conn)
			q, err := http.ReadRequest(reader)
			if err == nil {
				io.ReadAll(q.Body)
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
			got, _ = io.ReadAll(reader)
			close(done)
		})
		_, address := w.proxy(t, "example.com")
		answer := talk(t, address, text)
		require.Equal(t, 200, status(answer), name)
		require.Equal(t, 1, strings.Count(answer, "HTTP/1.1"), name)
		<-done
		require.Empty(t, got, name)
	}
}

// TestBrokenBodies: a body that does not come whole does not look whole.
func TestBrokenBodies(t *testing.T) {
	for name, text := range map[string]string{
		"short":         "Content-Length: 10\r\n\r\nhello",
		"chunks end":    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"chunk is long": "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
		"bad size":      "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
		"huge size":     "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
	} {
		w := newInternet(t)
		ended := make(chan error)
		w.raw(t, 80, func(conn net.Conn) {
			q, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				_, err = io.ReadAll(q.Body)
			}
			ended <- err
		})
		_, address := w.proxy(t, "example.com")
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		io.WriteString(conn, "POST http://example.com/"+toServer+text)
		conn.(*net.TCPConn).CloseWrite()
		require.Error(t, <-ended, name)
		conn.Close()
	}
}

// TestRebinding: what a name resolves to is asked once and is what is dialed.
func TestRebinding(t *testing.T) {
	w := newInternet(t)
	ask := "GET http://rebind.example.com/ HTTP/1.1\r\nHost: rebind.example.com\r\n\r\n"
	p, address := w.proxy(t, "*.example.com")
	require.Equal(t, 200, status(talk(t, address, ask)))
	require.Equal(t, []string{"rebind.example.com"}, w.asked)
	require.Equal(t, []string{"93.184.216.34:80"}, w.takeDialed())
	require.Equal(t, 403, status(talk(t, address, ask)))
	require.Empty(t, w.takeDialed())
	hosts, _ := p.Refused()
	require.Equal(t, []egress.Refusal{{Host: "rebind.example.com:80", Why: "has a loopback address, 127.0.0.1"}}, hosts)

	for _, name := range []string{"mixed", "go"} {
		require.Equal(t, 200, status(talk(t, address, strings.ReplaceAll(ask, "rebind", name))))
		require.Equal(t, []string{"93.184.216.34:80"}, w.takeDialed(), name)
	}
}

// TestWhatWouldOpenIt is told for what may be opened.
func TestWhatWouldOpenIt(t *testing.T) {
	w := newInternet(t)
	p, address := w.proxy(t, "*.example.com")
	want := map[string]string{
		"other.com:443": "other.com", "other.com:22": "other.com:22", "93.184.216.34:80": "93.184.216.34", "10.1.2.3:443": "10.1.2.3:443",
		"[2606::1]:443": "[2606::1]", "[fd12::1]:80": "[fd12::1]:80", "127.0.0.1:80": "127.0.0.1:80", "private.example.com:443": "10.1.2.3:443",
		"loop.example.com:443": "", "metadata.example.com:80": "", "169.254.169.254:80": "", "localhost:80": "", "0.0.0.0:80": "",
	}
	for host := range want {
		require.Equal(t, 403, status(talk(t, address, "CONNECT "+host+" HTTP/1.1\r\n\r\n")), host)
	}
	hosts, _ := p.Refused()
	got := map[string]string{}
	for _, r := range hosts {
		got[r.Host] = r.Opens
	}
	require.Equal(t, want, got)
}

// TestRefusalsAreTold: with the name of the program's own setting, each once.
func TestRefusalsAreTold(t *testing.T) {
	w := newInternet(t)
	var told []string
	p, address := w.proxy(t, "example.com", func(c *egress.Config) {
		c.Setting = "network"
		c.HowToAllow = func(entry string) string { return "list " + entry }
		c.OnRefused = func(r egress.Refusal) { told = append(told, r.Host) }
	})
	for range 3 {
		answer := talk(t, address, "CONNECT other.com:443 HTTP/1.1\r\n\r\n")
		require.Contains(t, answer, " 403 Not allowed by network\r\n")
		require.Contains(t, answer, "other.com:443 is not on the list of allowed hosts: list other.com\n")
	}
	talk(t, address, "CONNECT third.com:443 HTTP/1.1\r\n\r\n")
	p.Close()
	require.Equal(t, []string{"other.com:443", "third.com:443"}, told)
}

// TestListedAddresses: an address that is listed with its port opens that, and
// makes a listed name usable that leads there.
func TestListedAddresses(t *testing.T) {
	w := newInternet(t)
	_, address := w.proxy(t, "127.0.0.1:80,10.1.2.3:80,private.example.com,93.184.216.35,[::1]:80")
	for host, want := range map[string]int{
		"127.0.0.1": 200, "10.1.2.3": 200, "private.example.com": 200, "[::1]": 200, "93.184.216.35": 200,
		"127.0.0.2": 403, "loop.example.com": 403, "10.1.2.3:443": 403, "private.example.com:443": 403, "93.184.216.34": 403,
	} {
		require.Equal(t, want, status(talk(t, address, "GET http://"+host+"/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n")), host)
	}
	_, address = w.proxy(t, "example.com", func(c *egress.Config) {
		c.OwnAddresses = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("93.184.216.34")} }
	})
	require.Contains(t, talk(t, address, "GET http://example.com/"+toServer+"\r\n"), "has this machine's own address, 93.184.216.34")
}

// TestOtherAddressesAreTried of the one answer, and no others.
func TestOtherAddressesAreTried(t *testing.T) {
	w := newInternet(t)
	w.names["example.com"] = []string{"2606:2800:220:1::1,10.0.0.1,93.184.216.34,93.184.216.35"}
	dial := w.dial
	_, address := w.proxy(t, "example.com", func(c *egress.Config) {
		c.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			conn, err := dial(ctx, to)
			if err == nil && to.Addr().Is4() {
				conn.Close()
				return nil, io.EOF
			}
			return conn, err
		}
	})
	require.Equal(t, 200, status(talk(t, address, "GET http://example.com/"+toServer+"\r\n")))
	require.Equal(t, []string{"93.184.216.34:80", "93.184.216.35:80", "[2606:2800:220:1::1]:80"}, w.takeDialed())
}

// TestFronts: TLS must ask for the host that CONNECT named.
func TestFronts(t *testing.T) {
	w := newInternet(t)
	w.secure(t)
	w.servers[8443], w.servers[80] = w.servers[443], w.servers[443]
	p, address := w.proxy(t, "example.com,93.184.216.34,example.com:8443")
	for _, c := range []struct {
		host, name string
		passes     bool
	}{
		{"example.com:443", "example.com", true},
		{"EXAMPLE.com.:443", "Example.COM", true},
		{"example.com:443", "other.com", false},
		{"example.com:443", "www.example.com", false},
		{"example.com:443", "", false},
		{"example.com:80", "example.com", true},
		{"example.com:80", "other.com", false},
		{"93.184.216.34:443", "", true},
		{"93.184.216.34:443", "other.com", false},
		{"93.184.216.34:443", "example.com", false},
		{"example.com:8443", "example.com", true},
		{"example.com:8443", "other.com", false},
		{"example.com:8443", "", true},
	} {
		before, _ := p.Refused()
		conn, _ := connect(t, address, c.host)
		err := handshake(conn, c.name)
		conn.Close()
		after, _ := p.Refused()
		if c.passes {
			require.NoError(t, err, c)
			require.Equal(t, before, after)
		} else {
			require.ErrorContains(t, err, "access denied", c)
			require.Len(t, after, len(before)+1, c)
			require.Contains(t, after[len(before)].Why, "SNI", c)
		}
	}
}

// TestHellosInPieces are put together, and what comes right behind CONNECT is
// looked at like all else.
func TestHellosInPieces(t *testing.T) {
	hello := clientHello(t, "example.com")
	w := newInternet(t)
	got := make(chan string, 1)
	w.raw(t, 443, func(conn net.Conn) {
		buf := make([]byte, len(hello))
		n, _ := io.ReadFull(conn, buf)
		got <- string(buf[:n])
	})
	p, address := w.proxy(t, "example.com")

	conn, _ := connect(t, address, "example.com:443")
	for i := range hello {
		_, err := conn.Write(hello[i : i+1])
		require.NoError(t, err)
	}
	require.Equal(t, string(hello), <-got)

	talk(t, address, "CONNECT example.com:443 HTTP/1.1\r\n\r\n"+string(hello))
	require.Equal(t, string(hello), <-got)

	// Cut into two records.
	cut := append([]byte{22, 3, 1, 0, 5}, hello[5:10]...)
	rest := len(hello) - 10
	cut = append(append(cut, 22, 3, 1, byte(rest>>8), byte(rest)), hello[10:]...)
	talk(t, address, "CONNECT example.com:443 HTTP/1.1\r\n\r\n"+string(cut))
	require.Equal(t, string(cut[:len(hello)]), <-got)

	for name, text := range map[string]string{
		"plain":           "GET / HTTP/1.1\r\nHost: other.com\r\n\r\n",
		"another CONNECT": "CONNECT other.com:443 HTTP/1.1\r\n\r\n",
		"ssh":             "SSH-2.0-x\r\n",
		"an alert":        "\x15\x03\x01\x00\x02\x02\x31",
		"SSLv2":           "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",
		"not a hello":     "\x16\x03\x01\x00\x04\x02\x00\x00\x00",
		"a broken hello":  "\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03",
		"a giant hello":   "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + strings.Repeat("x", 1<<14),
		"a giant record":  "\x16\x03\x01\xff\xff" + strings.Repeat("x", 1<<16),
	} {
		before, _ := p.Refused()
		conn, reader := connect(t, address, "example.com:443")
		io.WriteString(conn, text)
		io.ReadAll(reader)
		conn.Close()
		require.Empty(t, <-got, name)
		after, more := p.Refused()
		require.True(t, len(after) > 0 && len(after) >= len(before) && more == 0, name)
	}
	// Who says nothing asks for nothing.
	before, _ := p.Refused()
	conn, _ = connect(t, address, "example.com:443")
	conn.Close()
	require.Empty(t, <-got)
	conn, _ = connect(t, address, "example.com:443")
	conn.Write(hello[:20])
	conn.Close()
	require.Empty(t, <-got)
	after, _ := p.Refused()
	require.Equal(t, before, after)
}

// clientHello is what a client of TLS says first.
func clientHello(t testing.TB, name string) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		tls.Client(there, &tls.Config{ServerName: name}).Handshake()
	}()
	head := make([]byte, 5)
	_, err := io.ReadFull(here, head)
	require.NoError(t, err)
	body := make([]byte, int(head[3])<<8|int(head[4]))
	_, err = io.ReadFull(here, body)
	require.NoError(t, err)
	return append(head, body...)
}

// A client that opens all it can leaves others one connection each, and what is over.
func TestConnectionsAreShared(t *testing.T) {
	w := newInternet(t)
	w.raw(t, 2222, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	shared := make(chan struct{}, 1)
	_, greedy := w.proxy(t, "example.com:2222", func(c *egress.Config) { c.Shared = shared })
	modest, address := w.proxy(t, "example.com:2222", func(c *egress.Config) { c.Shared = shared })
	connect(t, greedy, "example.com:2222")
	second, _ := connect(t, greedy, "example.com:2222")
	mine, _ := connect(t, address, "example.com:2222")
	waits, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer waits.Close()
	fmt.Fprintf(waits, "CONNECT example.com:2222 HTTP/1.1\r\n\r\n")
	waits.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err = waits.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	mine.Close() // its own is free again
	waits.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = waits.Read(make([]byte, 1))
	require.NoError(t, err)
	second.Close()
	connect(t, address, "example.com:2222")
	modest.Close()
	connect(t, greedy, "example.com:2222")
}
