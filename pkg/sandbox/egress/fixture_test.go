package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
)

// internet is the world as the tests' proxies see it: names with addresses,
// and behind each address the same servers, by port.
type internet struct {
	names   map[string][]string // more answers than one are given one after the other, the last for ever
	servers map[uint16]string

	mu     sync.Mutex
	asked  []string // names that were resolved
	dialed []string
	heads  []*http.Request // that the plain server got
	bodies []string
}

func newInternet(t testing.TB) *internet {
	t.Helper()
	w := &internet{names: map[string][]string{
		"example.com": {"93.184.216.34"}, "www.example.com": {"93.184.216.34"}, "other.com": {"93.184.216.35"},
		"six.example.com": {"2606:2800:220:1::1"}, "loop.example.com": {"127.0.0.1"}, "private.example.com": {"10.1.2.3"},
		"metadata.example.com": {"169.254.169.254"}, "mapped.example.com": {"::ffff:127.0.0.1"}, "nat64.example.com": {"64:ff9b::7f00:1"},
		"go.example.com":     {"::ffff:93.184.216.34"}, // as package net gives an A record
		"mixed.example.com":  {"127.0.0.1,93.184.216.34,::1,fd12::1"},
		"rebind.example.com": {"93.184.216.34", "127.0.0.1"},
	}}
	plain := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(plain.Close)
	w.servers = map[uint16]string{80: plain.Listener.Addr().String()}
	return w
}

// secure puts a server with TLS behind port 443.
func (w *internet) secure(t testing.TB) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	w.servers[443] = server.Listener.Addr().String()
	return server
}

// raw puts a server behind a port that is the given function.
func (w *internet) raw(t testing.TB, port uint16, serve func(net.Conn)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		tasks.Wait()
	})
	w.servers[port] = listener.Addr().String()
}

func (w *internet) serve(to http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	w.mu.Lock()
	w.heads = append(w.heads, q)
	w.bodies = append(w.bodies, string(body))
	w.mu.Unlock()
	to.Header().Set("Proxy-Authenticate", "Basic")
	to.Header().Add("Set-Cookie", "a=1")
	to.Header().Add("Set-Cookie", "b=2")
	switch q.URL.Path {
	case "/redirect":
		http.Redirect(to, q, "http://other.com/", http.StatusFound)
	case "/empty":
		to.WriteHeader(http.StatusNoContent)
	case "/unchanged":
		to.WriteHeader(http.StatusNotModified)
	case "/hints":
		to.WriteHeader(http.StatusEarlyHints)
		io.WriteString(to, "after the hints")
	case "/chunks":
		for range 3 {
			io.WriteString(to, "chunk ")
			to.(http.Flusher).Flush()
		}
	case "/size":
		n, _ := strconv.Atoi(q.URL.RawQuery)
		to.Header().Set("Content-Length", q.URL.RawQuery)
		io.Copy(to, io.LimitReader(zeros{}, int64(n)))
	default:
		io.WriteString(to, q.Method+" "+q.Host+" "+q.RequestURI+" "+string(body))
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// proxy starts one over a list.
func (w *internet) proxy(t testing.TB, list string, change ...func(*egress.Config)) (*egress.Proxy, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := egress.Config{Allow: parse(t, list), Resolve: w.resolve, Dial: w.dial}
	for _, f := range change {
		f(&c)
	}
	p := egress.Start(c, listener)
	t.Cleanup(p.Close)
	return p, listener.Addr().String()
}

func (w *internet) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, name)
	answers := w.names[name]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, Server: "10.9.9.9", IsNotFound: true}
	}
	if len(answers) > 1 {
		w.names[name] = answers[1:]
	}
	var addrs []netip.Addr
	for text := range strings.SplitSeq(answers[0], ",") {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func (w *internet) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, to.String())
	server := w.servers[to.Port()]
	w.mu.Unlock()
	if server == "" {
		server = "127.0.0.1:1" // nobody listens there
	}
	return new(net.Dialer).DialContext(ctx, "tcp", server)
}

// takeDialed returns the addresses that were dialed since the last time.
func (w *internet) takeDialed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	dialed := w.dialed
	w.dialed = nil
	return dialed
}

// talk sends bytes to an address and returns what comes until the end.
func talk(t testing.TB, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err, "the connection is ended, not reset")
	return string(answer)
}

// status is the number in the first line of an answer.
func status(answer string) int {
	_, rest, _ := strings.Cut(answer, " ")
	number, _ := strconv.Atoi(rest[:min(3, len(rest))])
	return number
}

// connect opens a tunnel.
func connect(t testing.TB, address, host string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = io.WriteString(conn, "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	return conn, reader
}

// handshake speaks TLS through a tunnel, and returns the error.
func handshake(conn net.Conn, name string) error {
	return tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
}
