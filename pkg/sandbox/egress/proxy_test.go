package egress_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
)

// client is an ordinary client of a proxy.
func client(t testing.TB, address string, roots *x509.CertPool) *http.Client {
	t.Helper()
	transport := &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: address, User: url.UserPassword("user", "secret")}),
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: ""},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func get(t testing.TB, c *http.Client, url string) (int, string) {
	t.Helper()
	answer, err := c.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}

func TestPlainRequests(t *testing.T) {
	w := newInternet(t)
	_, address := w.proxy(t, "example.com,*.example.com")
	c := client(t, address, nil)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	code, body := get(t, c, "http://example.com/a%2Fb//c?x=1&y=%00")
	require.Equal(t, 200, code)
	require.Equal(t, "GET example.com /a%2Fb//c?x=1&y=%00 ", body)
	require.Equal(t, []string{"93.184.216.34:80"}, w.takeDialed())
	_, body = get(t, c, "http://example.com//double")
	require.Equal(t, "GET example.com //double ", body)
	_, body = get(t, c, "http://six.example.com")
	require.Equal(t, "GET six.example.com / ", body)
	require.Equal(t, []string{"93.184.216.34:80", "[2606:2800:220:1::1]:80"}, w.takeDialed())

	for path, want := range map[string]struct {
		code int
		body string
	}{"/redirect": {302, `<a href="http://other.com/">Found</a>.` + "\n\n"}, "/empty": {204, ""}, "/unchanged": {304, ""},
		"/chunks": {200, "chunk chunk chunk "}, "/hints": {200, "after the hints"}} {
		code, body := get(t, c, "http://example.com"+path)
		require.Equal(t, want.code, code, path)
		require.Equal(t, want.body, body, path)
	}
	answer, err := c.Head("http://example.com/size?12345")
	require.NoError(t, err)
	require.Equal(t, int64(12345), answer.ContentLength)
	_, body = get(t, c, "http://example.com/size?3000000")
	require.Len(t, body, 3_000_000)
	require.Equal(t, []string{"a=1", "b=2"}, answer.Header["Set-Cookie"])
	require.NotContains(t, answer.Header, "Proxy-Authenticate")

	big := strings.Repeat("0123456789", 100_000)
	for name, body := range map[string]io.Reader{"with a length": strings.NewReader(big), "in chunks": io.MultiReader(strings.NewReader(big))} {
		answer, err := c.Post("http://example.com/", "text/plain", body)
		require.NoError(t, err, name)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, "POST example.com / "+big, string(text), name)
	}
	// A client that waits for leave to send its body.
	q, err := http.NewRequest("PUT", "http://example.com/", strings.NewReader("waited"))
	require.NoError(t, err)
	q.Header.Set("Expect", "100-continue")
	answer, err = (&http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: address}), ExpectContinueTimeout: time.Hour, DisableKeepAlives: true,
	}}).Do(q)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, "PUT example.com / waited", string(text))
}

// TestOldClients speak HTTP/1.0, which has no chunks and needs no Host.
func TestOldClients(t *testing.T) {
	w := newInternet(t)
	_, address := w.proxy(t, "example.com")
	answer := talk(t, address, "GET http://example.com/chunks HTTP/1.0\r\n\r\n")
	require.Equal(t, 200, status(answer))
	require.True(t, strings.HasSuffix(answer, "\r\n\r\nchunk chunk chunk "), answer)
	require.Equal(t, "example.com", w.heads[0].Host)
}

func TestHeadersOfOneHopAreStripped(t *testing.T) {
	w := newInternet(t)
	_, address := w.proxy(t, "example.com")
	answer := talk(t, address, strings.ReplaceAll(`GET HTTP://EXAMPLE.com.:80/p HTTP/1.1
Host: example.COM
Connection: close, X-Secret
X-Secret: 1
Keep-Alive: 1
Proxy-Connection: keep-alive
Proxy-Authorization: Basic c2VjcmV0
TE: trailers
Trailer: X
Upgrade: websocket
Expect: 100-continue
Accept:   text/plain  
X-Empty:
Authorization: Bearer own

`, "\n", "\r\n"))
	require.Equal(t, 200, status(answer))
	require.Contains(t, answer, "\r\nConnection: close\r\n")
	got := w.heads[len(w.heads)-1]
	require.Equal(t, "example.com", got.Host)
	require.Equal(t, http.Header{"Accept": {"text/plain"}, "X-Empty": {""}, "Authorization": {"Bearer own"}, "Connection": {"close"}}, got.Header)
}

func TestTunnels(t *testing.T) {
	w := newInternet(t)
	server := w.secure(t)
	p, address := w.proxy(t, "example.com")
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate()) // it is for example.com
	c := client(t, address, roots)
	code, body := get(t, c, "https://example.com/size?3000000")
	require.Equal(t, 200, code)
	require.Len(t, body, 3_000_000)
	require.Equal(t, []string{"93.184.216.34:443"}, w.takeDialed())
	require.Equal(t, 2, w.heads[0].ProtoMajor, "what TLS carries is not touched")
	_, err := c.Get("https://other.com/")
	require.ErrorContains(t, err, "Not allowed by --net")
	hosts, more := p.Refused()
	require.Equal(t, []egress.Refusal{{Host: "other.com:443", Why: "is not on the list of allowed hosts", Opens: "other.com"}}, hosts)
	require.Zero(t, more)
}

// TestRedirectsAreTheClients: one to a host that is not allowed is handed on,
// and not followed.
func TestRedirectsAreTheClients(t *testing.T) {
	w := newInternet(t)
	p, address := w.proxy(t, "example.com")
	code, body := get(t, client(t, address, nil), "http://example.com/redirect")
	require.Equal(t, 403, code)
	require.Contains(t, body, "other.com:80 is not on the list")
	require.Equal(t, []string{"93.184.216.34:80"}, w.takeDialed())
	hosts, _ := p.Refused()
	require.Len(t, hosts, 1)
}

// TestHalfClosed: a client may end its half and still get the answer, and a
// server may speak first, or end first.
func TestHalfClosed(t *testing.T) {
	w := newInternet(t)
	w.raw(t, 2222, func(conn net.Conn) {
		io.WriteString(conn, "hello\n")
		text, _ := io.ReadAll(conn)
		conn.Write(bytes.ToUpper(text))
	})
	w.raw(t, 2223, func(conn net.Conn) {
		conn.(*net.TCPConn).CloseWrite()
		text, _ := io.ReadAll(conn)
		w.mu.Lock()
		w.bodies = append(w.bodies, string(text))
		w.mu.Unlock()
	})
	_, address := w.proxy(t, "example.com:2222,example.com:2223")
	conn, reader := connect(t, address, "example.com:2222")
	line, err := reader.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	_, err = io.WriteString(conn, "shout")
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, "SHOUT", string(text))

	conn, reader = connect(t, address, "example.com:2223")
	text, err = io.ReadAll(reader)
	require.NoError(t, err)
	require.Empty(t, text)
	_, err = io.WriteString(conn, "late")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.bodies) == 1 && w.bodies[0] == "late"
	}, 20*time.Second, time.Millisecond)
}

// TestBadServers: what a server does wrong reaches the client as an error, and
// never as a whole answer.
func TestBadServers(t *testing.T) {
	w := newInternet(t)
	_, address := w.proxy(t, "example.com,unknown.com")
	ask := func(version string) string {
		return talk(t, address, "GET http://example.com/ HTTP/"+version+"\r\nHost: example.com\r\n\r\n")
	}
	for text, want := range map[string]int{
		"": 502, "garbage\r\n\r\n": 502, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx": 502,
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n": 502, "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\n": 502,
		"HTTP/1.1 101 Switching\r\n\r\n": 502, strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100): 502,
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70_000) + "\r\n\r\n":         502,
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n": 204,
	} {
		w.raw(t, 80, func(conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, text)
		})
		require.Equal(t, want, status(ask("1.1")), "%.60q", text)
	}
	for _, c := range []struct {
		text, version string
		whole         bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole", "1.1", true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwhole", "1.1", false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\nX: trailer\r\n\r\n", "1.1", true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n", "1.1", false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n", "1.0", true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n", "1.0", false},
		{"HTTP/1.1 200 OK\r\n\r\nwhole", "1.1", true},
		{"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nwhole", "1.0", true},
		// What follows an answer is none.
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwholeHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra", "1.1", true},
	} {
		w.raw(t, 80, func(conn net.Conn) {
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, c.text)
		})
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		fmt.Fprintf(conn, "GET http://example.com/ HTTP/%s\r\nHost: example.com\r\n\r\n", c.version)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err, c.text)
		body, err := io.ReadAll(answer.Body)
		conn.Close()
		require.Equal(t, c.whole, err == nil, "%q: %v", c.text, err)
		if c.whole {
			require.Equal(t, "whole", string(body), c.text)
		}
	}
	delete(w.servers, 80)
	require.Contains(t, ask("1.1"), "HTTP/1.1 502 example.com cannot be reached: connection refused\r\n")
	answer := talk(t, address, "GET http://unknown.com/ HTTP/1.1\r\nHost: unknown.com\r\n\r\n")
	require.Contains(t, answer, "unknown.com cannot be resolved: no such host")
	require.NotContains(t, answer, "10.9.9.9", "what the server's own network is like is not told")
}

func TestBounds(t *testing.T) {
	w := newInternet(t)
	ignore := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	w.raw(t, 80, ignore)
	w.raw(t, 443, ignore)
	w.raw(t, 2222, ignore)
	_, address := w.proxy(t, "example.com", func(c *egress.Config) { c.HeadTime = 50 * time.Millisecond })
	head := "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
	require.Empty(t, talk(t, address, head), "a head that does not come")
	require.Empty(t, talk(t, address, ""), "nor its beginning")
	_, address = w.proxy(t, "example.com", func(c *egress.Config) { c.HeadTime = time.Second }) // connect itself has that long
	_, silent := connect(t, address, "example.com:443")
	conn, begun := connect(t, address, "example.com:443")
	io.WriteString(conn, "\x16\x03\x01")
	for _, reader := range []io.Reader{silent, begun} {
		_, err := io.ReadAll(reader)
		require.NoError(t, err, "TLS that does not come")
	}
	_, address = w.proxy(t, "example.com,example.com:2222", func(c *egress.Config) { c.IdleTime = 50 * time.Millisecond })
	require.Equal(t, 502, status(talk(t, address, head+"\r\n")), "a server that says nothing")
	_, reader := connect(t, address, "example.com:2222")
	_, err := io.ReadAll(reader)
	require.NoError(t, err, "nothing moves")

	_, address = w.proxy(t, "example.com")
	require.Equal(t, 431, status(talk(t, address, head+"X: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")))
	require.Equal(t, 431, status(talk(t, address, head+strings.Repeat("X: x\r\n", 16<<10)+"\r\n")))
	refused := "POST http://other.com/ HTTP/1.1\r\nHost: other.com\r\nContent-Length: 900000\r\n\r\n" + strings.Repeat("x", 900_000)
	require.Equal(t, 403, status(talk(t, address, refused)), "one who sends first reads the answer all the same")

	// The third waits for one of the two.
	_, long := w.proxy(t, "example.com:2222", func(c *egress.Config) { c.Connections = 2 })
	first, _ := connect(t, long, "example.com:2222")
	connect(t, long, "example.com:2222")
	third, err := net.Dial("tcp", long)
	require.NoError(t, err)
	defer third.Close()
	fmt.Fprintf(third, "CONNECT example.com:2222 HTTP/1.1\r\n\r\n")
	third.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, err = third.Read(make([]byte, 1))
	require.Error(t, err)
	first.Close()
	third.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = third.Read(make([]byte, 1))
	require.NoError(t, err)
}

// TestCloseEndsAll that is open, and returns when it has ended.
func TestCloseEndsAll(t *testing.T) {
	w := newInternet(t)
	ended := make(chan struct{}, 3)
	hang := func(conn net.Conn) {
		io.Copy(io.Discard, conn)
		ended <- struct{}{}
	}
	w.raw(t, 80, hang)
	w.raw(t, 2222, hang)
	p, address := w.proxy(t, "example.com,example.com:2222")
	_, tunnel := connect(t, address, "example.com:2222")
	asking, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer asking.Close()
	io.WriteString(asking, "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 10\r\n\r\nx")
	idle, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer idle.Close()
	require.Eventually(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.dialed) == 2 }, 20*time.Second, time.Millisecond)
	p.Close()
	<-ended
	<-ended
	for _, conn := range []io.Reader{tunnel, asking, idle} {
		_, err := io.ReadAll(conn)
		_ = err // an end or a reset: not a wait
	}
	_, err = net.Dial("tcp", address)
	require.Error(t, err)
	p.Close()
}

// TestRefusalsAreBounded in number and in length.
func TestRefusalsAreBounded(t *testing.T) {
	w := newInternet(t)
	p, address := w.proxy(t, "example.com")
	for i := range 30 {
		host := fmt.Sprintf("h%d.other.com", i)
		for range 2 {
			require.Equal(t, 403, status(talk(t, address, "CONNECT "+host+":443 HTTP/1.1\r\n\r\n")))
		}
	}
	hosts, more := p.Refused()
	require.Len(t, hosts, 20)
	require.Equal(t, 20, more)
	require.Equal(t, "h0.other.com:443", hosts[0].Host)

	p, address = w.proxy(t, "example.com")
	require.Equal(t, 403, status(talk(t, address, "CONNECT "+strings.Repeat("a.", 20_000)+"com:443 HTTP/1.1\r\n\r\n")))
	hosts, _ = p.Refused()
	require.LessOrEqual(t, len(hosts[0].Host), 300)
}

// TestThisMachine is what a proxy works with unless told otherwise: an address
// of it is dialed where that very one is listed with its port.
func TestThisMachine(t *testing.T) {
	w := newInternet(t)
	address := w.servers[80]
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := egress.Start(egress.Config{Allow: parse(t, address)}, listener)
	defer p.Close()
	for host, want := range map[string]int{address: 200, "127.0.0.2:" + port: 403, "localhost:" + port: 403} {
		require.Equal(t, want, status(talk(t, listener.Addr().String(), "GET http://"+host+"/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n")), host)
	}
}

// late is a connection on which reading fails once for lateness.
type late struct {
	net.Conn
	failed  bool
	passing func()
}

func (l *late) SetReadDeadline(time.Time) error { return nil }

func (l *late) Read(b []byte) (int, error) {
	if !l.failed {
		l.failed = true
		l.passing()
		return 0, os.ErrDeadlineExceeded
	}
	return copy(b, "byte"), nil
}

// TestIdleIsBoth: one direction may rest as long as the other moves.
func TestIdleIsBoth(t *testing.T) {
	buf := make([]byte, 10)
	one := &late{}
	stream, touch := egress.NewStream(one, time.Hour)
	one.passing = touch
	n, err := stream.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "byte", string(buf[:n]))

	stream, _ = egress.NewStream(&late{passing: func() {}}, time.Nanosecond)
	_, err = stream.Read(buf)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
