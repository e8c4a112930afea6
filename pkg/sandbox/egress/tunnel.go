package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// tunnel answers a CONNECT request with 200, and copies bytes in both directions
// until both have ended or one failed. Before it sends the client's first bytes
// to the server, checkGreeting must accept them, within Config.HeadTime. A
// refusal is recorded; a client that speaks TLS gets an alert, any other only the
// end of the connection.
func (p *Proxy) tunnel(q *request, allowedBy entry, client *stream, reader *bufio.Reader, server *stream) {
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	allowPlain := allowedBy.port != 0 && allowedBy.port != 443
	if !allowPlain {
		client.setFixedDeadline(time.Now().Add(p.config.HeadTime))
	}
	var both sync.WaitGroup
	cut := func() {
		client.Close()
		server.Close()
	}
	both.Go(func() {
		if copyStream(client, server) != nil {
			cut()
		}
	})
	both.Go(func() {
		seen, err := checkGreeting(q.host, allowPlain, reader)
		client.setFixedDeadline(time.Time{})
		var no *refusal
		if errors.As(err, &no) {
			no.requested = q.host.authority(q.port, 0)
			p.recordRefusal(no)
			if seen != nil {
				client.Write(accessDenied)
			}
			client.closeWriteAndDrain()
		} else if err == nil {
			if _, err = server.Write(seen); err == nil {
				err = copyStream(server, reader)
			}
		}
		if err != nil {
			cut()
		}
	})
	both.Wait()
}

// accessDenied is a fatal TLS alert (RFC 8446, 6.2), which clients show by its
// name.
var accessDenied = []byte{21, 3, 1, 0, 2, 2, 49}

// checkGreeting reads the client's first bytes until it can decide whether the
// client may go on. It refuses TLS that names another host than h. Unless
// allowPlain is set, it also refuses other protocols than TLS, and TLS without
// a name if h has one. A client that closes without sending is not refused.
// seen are the bytes of TLS that it took from reader; nil if it took none. The
// error is a *refusal, or that of reading.
func checkGreeting(h host, allowPlain bool, reader *bufio.Reader) (seen []byte, err error) {
	const handshake = 22
	first, err := reader.Peek(1)
	switch {
	case err == io.EOF:
		return nil, nil
	case err != nil:
		return nil, err
	case first[0] != handshake && allowPlain:
		return nil, nil
	case first[0] != handshake:
		return nil, &refusal{why: "got a CONNECT without TLS, which is required"}
	}
	name, seen, err := readServerName(reader)
	switch {
	case err != nil && errors.Is(err, errNoHello):
		return nil, &refusal{why: "got a TLS handshake that cannot be read"}
	case err != nil:
		return nil, err
	case name == "" && (allowPlain || h.name == ""):
		return seen, nil
	case name == "":
		return seen, &refusal{why: "got a TLS handshake without a host name (no SNI)"}
	}
	if asked, err := parseHost(name); err != nil || asked != h {
		return seen, &refusal{why: "got a TLS handshake for another host (SNI " + toPrintable(name) + ")"}
	}
	return seen, nil
}

var (
	// errHelloRead ends the handshake of crypto/tls after it has read the
	// client's hello. errNoHello means that the client's first bytes are not a
	// TLS hello.
	errHelloRead = errors.New("the hello has been read")
	errNoHello   = errors.New("this is no TLS hello")
)

// maxHelloBytes bounds the client's hello.
const maxHelloBytes = 80 << 10

// readServerName reads a client's TLS hello and returns the server name in it
// ("" if it has none), and all bytes read. It uses crypto/tls, which refuses
// repeated extensions. It returns errNoHello for something else than a hello.
func readServerName(r io.Reader) (name string, seen []byte, err error) {
	var copied bytes.Buffer
	source := &helloConn{r: io.TeeReader(io.LimitReader(r, maxHelloBytes), &copied)}
	err = tls.Server(source, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, errHelloRead
		},
	}).Handshake()
	switch {
	case errors.Is(err, errHelloRead):
		return name, copied.Bytes(), nil
	case source.err == io.EOF && copied.Len() < maxHelloBytes:
		return "", nil, io.ErrUnexpectedEOF
	case source.err != nil && source.err != io.EOF:
		return "", nil, source.err
	}
	return "", nil, errNoHello
}

// helloConn lets crypto/tls read a client's hello from the reader r. Write
// discards the data, so that the client gets no answer.
type helloConn struct {
	net.Conn // nil: crypto/tls calls no other method
	r        io.Reader
	err      error // the last error of reading r
}

func (c *helloConn) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if err != nil {
		c.err = err
	}
	return n, err
}

func (c *helloConn) Write(b []byte) (int, error) { return len(b), nil }

// SetWriteDeadline does nothing: nothing is written.
func (c *helloConn) SetWriteDeadline(time.Time) error { return nil }

// copyStream copies from until its end to the stream to, and then closes to for
// writing. It returns the first error, nil at the end of from.
func copyStream(to *stream, from io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return to.CloseWrite()
		case err != nil:
			return err
		}
	}
}
