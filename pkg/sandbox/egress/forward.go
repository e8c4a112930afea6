package egress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
)

// forward sends a request to the server and its response to the client, and
// closes both connections. reader continues the client's stream after the
// request's head. Both heads are written again instead of copied. If the server
// fails before its response, the client gets status 502; if it fails later, the
// client's connection is aborted.
func (p *Proxy) forward(q *request, client *stream, reader *bufio.Reader, server *stream) {
	var sending sync.WaitGroup
	if _, err := server.Write(q.serverHead()); err != nil {
		p.answerError(client, q, &httpError{http.StatusBadGateway, q.host.String() + " ended the connection"})
		return
	}
	if q.length != 0 {
		sending.Go(func() {
			if q.sendBody(client, reader, server) != nil {
				server.abort() // what was not sent whole must not look whole
			}
		})
	}
	whole := p.forwardResponse(q, client, server)
	server.Close()
	if whole {
		client.closeWriteAndDrain() // which also ends the sending of a body nobody wants
	} else {
		client.abort()
	}
	client.Close()
	sending.Wait()
}

// sendBody copies the request's body from reader to the server. If the client
// expects it, it first sends 100 Continue to the client. It returns an error if
// the body is incomplete.
func (q *request) sendBody(client *stream, reader *bufio.Reader, server *stream) error {
	if q.expectContinue && reader.Buffered() == 0 {
		if _, err := io.WriteString(client, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	buf := make([]byte, 32<<10)
	if q.length != chunkedLength {
		n, err := io.CopyBuffer(hideReaderFrom{server}, io.LimitReader(reader, q.length), buf)
		if err == nil && n < q.length {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	chunks := httputil.NewChunkedWriter(hideReaderFrom{server})
	if _, err := io.CopyBuffer(chunks, httputil.NewChunkedReader(reader), buf); err != nil {
		return err
	}
	chunks.Close()
	_, err := io.WriteString(server, "\r\n")
	return err
}

// hideReaderFrom hides the ReadFrom method of a writer, which would bypass the
// deadlines of a stream.
type hideReaderFrom struct{ io.Writer }

// forwardResponse copies the server's response to the client, or sends status
// 502 if there is no valid response. It returns false if the client got only a
// part of the response.
func (p *Proxy) forwardResponse(q *request, client, server *stream) (whole bool) {
	bound := &io.LimitedReader{R: server, N: maxHeadBytes}
	reader := bufio.NewReader(bound)
	var r *http.Response
	for range 8 { // an interim answer or two
		var err error
		r, err = http.ReadResponse(reader, &http.Request{Method: q.method})
		if err != nil || r.StatusCode == http.StatusSwitchingProtocols {
			r = nil
			break
		}
		if r.StatusCode >= 200 {
			break
		}
		r = nil
	}
	if r == nil {
		p.answerError(client, q, &httpError{http.StatusBadGateway, q.host.String() + " gave no valid HTTP answer"})
		return true
	}
	bound.N = math.MaxInt64
	chunked := len(r.TransferEncoding) > 0 && q.minorVersion == 1
	if _, err := client.Write(responseHead(r, chunked)); err != nil {
		return false
	}
	var to io.Writer = hideReaderFrom{client}
	if chunked {
		chunks := httputil.NewChunkedWriter(to)
		if _, err := io.CopyBuffer(chunks, hideWriterTo{r.Body}, make([]byte, 32<<10)); err != nil {
			return false
		}
		chunks.Close()
		_, err := io.WriteString(client, "\r\n")
		return err == nil
	}
	_, err := io.CopyBuffer(to, hideWriterTo{r.Body}, make([]byte, 32<<10))
	return err == nil
}

// hideWriterTo hides the WriteTo method of a reader, which would bypass the
// deadlines of a stream.
type hideWriterTo struct{ io.Reader }

// responseHead returns the head of a response as it is sent to the client.
// chunked means that the body is sent in chunks.
func responseHead(r *http.Response, chunked bool) []byte {
	var all []headerField
	for name, values := range r.Header {
		for _, value := range values {
			all = append(all, headerField{name, value})
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", r.StatusCode, http.StatusText(r.StatusCode))
	for _, f := range forwardedFields(all) {
		if isToken(f.name) {
			b.WriteString(f.name + ": " + f.value + "\r\n")
		}
	}
	switch {
	case chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case r.ContentLength >= 0 && r.StatusCode != http.StatusNoContent && r.StatusCode != http.StatusNotModified:
		b.WriteString("Content-Length: " + strconv.FormatInt(r.ContentLength, 10) + "\r\n")
	}
	b.WriteString("Connection: close\r\n\r\n")
	return b.Bytes()
}
