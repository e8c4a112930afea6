package upstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/toolroom-mcp/toolroom/host/internal/eventstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// sse is the wire to a server with the retired HTTP+SSE transport: all its messages
// arrive on one stream, whose first event names the address for posting messages.
//
// Source: the MCP specification, "Transports: HTTP with SSE", version 2024-11-05.
type sse struct {
	*remote
	opened chan struct{} // closed when the address is known
	to     *url.URL
}

// newSSE returns a connection over the transport HTTP+SSE, which is not opened yet. It
// returns an error for a malformed address.
func newSSE(cfg Config) (*sse, error) {
	r, err := newRemote(cfg)
	if err != nil {
		return nil, err
	}
	return &sse{remote: r, opened: make(chan struct{})}, nil
}

// run passes the messages of the event stream to c until the stream ends, and returns why
// it ended. After c is dead, it waits for answers until nobody uses c any more.
func (s *sse) run(c *conn) error {
	s.attach(c)
	ended := make(chan error, 1)
	go func() { ended <- s.read() }()
	var err error
	select {
	case err = <-ended:
		c.fail(err)
		s.cancelAndWait()
	case <-c.dead:
		select { // the stream may still bring answers
		case err = <-ended:
			s.cancelAndWait()
		case <-c.unused:
			s.cancelAndWait()
			err = <-ended
		}
	}
	s.client.CloseIdleConnections()
	return err
}

// read reads the event stream until it ends, and returns the error that ended it, which
// is never nil. The first event with the name endpoint gives the address for messages.
func (s *sse) read() error {
	req, err := s.newRequest(s.life, http.MethodGet, s.base, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := s.client.Do(req)
	if err != nil {
		return s.offlineError(err)
	}
	defer res.Body.Close() //nolint:errcheck // only read from
	if res.StatusCode != http.StatusOK || mediaType(res) != "text/event-stream" {
		return s.statusError(res, nil)
	}
	events := eventstream.NewReader(res.Body, s.cfg.MaxLine)
	for {
		e, err := events.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			s.conn.failTooLong(long)
		case err != nil:
			return toolerr.New(toolerr.ServerOffline, "the server ended its stream: %w", err)
		case e.Name == "endpoint" && s.to == nil:
			if s.to, err = s.endpoint(string(e.Data)); err != nil {
				return err
			}
			close(s.opened)
		case e.Name == "" || e.Name == "message":
			s.conn.handleLine(e.Data)
		}
	}
}

// endpoint returns the URL for posting messages that the server named. It returns an error
// for another origin than the configured one, because that would get the credentials.
func (s *sse) endpoint(address string) (*url.URL, error) {
	to, err := s.base.Parse(address)
	if err != nil || to.Scheme != s.base.Scheme || to.Host != s.base.Host {
		return nil, toolerr.New(toolerr.ProtocolError, "the server wants messages at an origin other than %s", s.redactedURL())
	}
	return to, nil
}

// send posts a message in the background, except the one that ends the handshake. Its
// error means that nothing was sent. A failure of a post in the background becomes the
// answer of its request, or ends the connection.
func (s *sse) send(message []byte) error {
	<-s.attached
	m, err := jsonrpc.Split(message)
	if err != nil {
		return toolerr.New(toolerr.Internal, "the outgoing message is invalid: %w", err)
	}
	if err := s.beginWork(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.life, s.cfg.WriteTimeout)
	if m.Method == "initialize" { // the stream may open late
		cancel()
		ctx, cancel = context.WithTimeout(s.life, s.cfg.StartTimeout)
	}
	post := func() {
		defer s.work.Done()
		defer cancel()
		err := s.post(ctx, message)
		if errors.Is(err, errNotSent) {
			s.endConnection(err)
		}
		if err != nil && m.Kind == jsonrpc.Request {
			s.conn.deliver(m.ID, answer{err: err})
		}
	}
	if m.Method == "notifications/initialized" {
		post()
	} else {
		go post()
	}
	return nil
}

// post sends a message, after the address for it is known. The error is a notSentError if the
// server was not reached.
func (s *sse) post(ctx context.Context, message []byte) error {
	select {
	case <-s.opened:
	case <-ctx.Done():
		return toolerr.New(toolerr.ServerOffline, "the server named no address for messages")
	}
	req, err := s.newRequest(ctx, http.MethodPost, s.to, bytes.NewReader(bytes.TrimSuffix(message, []byte("\n"))))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.doRequest(req)
	if err != nil {
		if isUnsent(err) {
			return notSentError{s.offlineError(err)}
		}
		return s.offlineError(err)
	}
	defer drain(res.Body)
	if res.StatusCode >= 300 {
		return s.statusError(res, nil)
	}
	return nil
}
