package egress_test

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
)

// FuzzAuthority: a host has one form, which is ASCII, and no list allows what
// is not that form of one of its own.
func FuzzAuthority(f *testing.F) {
	for _, text := range []string{"example.com", "A.example.COM.:443", "*.example.com", "[::1]:80", "[::ffff:1.2.3.4]", "127.1", "0x7f.1",
		"1.2.3.4:22", "2130706433", "x@example.com", "example.com%2e", "\u212a.com", "xn--bcher-kva.example", "a_b.c", ".", "", ":", "[]:1"} {
		f.Add(text)
	}
	allow := parse(f, "example.com,*.example.org,1.2.3.4,[2606::1]:8443")
	f.Fuzz(func(t *testing.T, text string) {
		host, port, err := egress.Canonical(text)
		if allowed := allow.Allows(text, 443); allowed {
			require.NoError(t, err)
			require.True(t, host == "example.com" || strings.HasSuffix(host, ".example.org") || host == "1.2.3.4", "%q", text)
		}
		if err != nil {
			return
		}
		require.Regexp(t, `^([a-z0-9_-]+\.)*[a-z0-9_-]+$|^[0-9a-f:]*:[0-9a-f:.]+$|^::$`, host)
		again := host
		if strings.Contains(host, ":") {
			again = "[" + host + "]"
		}
		same, none, err := egress.Canonical(again)
		require.NoError(t, err)
		require.Equal(t, host, same)
		require.Zero(t, none)
		list, err := egress.ParseAllow(text)
		if err == nil && port != 0 && !strings.Contains(text, ",") && strings.TrimSpace(text) == text {
			require.True(t, list.Allows(again, port), "a list allows its own entry")
			require.False(t, list.Allows("x."+again, port))
		}
	})
}

// FuzzHead: what is accepted is written so that net/http reads one request in
// it, for the host that was understood, with one framing.
func FuzzHead(f *testing.F) {
	for _, text := range []string{
		"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"POST http://[2606::1]:8080?x HTTP/1.0\r\nContent-Length: 5\r\nConnection: x, Content-Length\r\nX: y\r\n\r\nhello",
		"GET http://a.b/ HTTP/1.1\r\nHost: a.b:80\r\nConnection: close\r\nProxy-Authorization: x\r\nTE: x\r\n\r\nrest",
		"HEAD http://1.2.3.4/%41//.. HTTP/1.0\r\nX:\r\nX: \xff\r\n\r\n",
		"DELETE http://a.b HTTP/1.1\r\nHost: a.b\r\nContent-Length: 0\r\n\r\n",
		"GET http://a.b/% HTTP/1.0\r\n\r\n",
		"PUT HTTP://a.b.:80/ HTTP/1.1\r\nhost: A.B\r\ntransfer-encoding: Chunked\r\nExpect: 100-continue\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		host, port, anew, err := egress.ReadHead(head)
		if err != nil || bytes.HasPrefix(head, []byte("CONNECT ")) {
			return
		}
		reader := bufio.NewReader(bytes.NewReader(anew))
		q, err := http.ReadRequest(reader)
		require.NoError(t, err, "%q", anew)
		require.Zero(t, reader.Buffered())
		said, saidPort, err := egress.Canonical(q.Host)
		require.NoError(t, err)
		require.Equal(t, host, said)
		require.True(t, saidPort == port || saidPort == 0 && port == 80)
		require.True(t, q.Close)
		require.Equal(t, 1, bytes.Count(anew, []byte("\r\nHost: ")))
		require.LessOrEqual(t, bytes.Count(anew, []byte("\r\nContent-Length: "))+bytes.Count(anew, []byte("\r\nTransfer-Encoding: ")), 1)
		for name := range q.Header {
			require.False(t, strings.HasPrefix(name, "Proxy-"), name)
		}
		require.True(t, strings.HasPrefix(q.RequestURI, "/"))
	})
}
