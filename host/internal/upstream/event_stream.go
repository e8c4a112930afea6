package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/host/internal/eventstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Bounds for resuming a broken stream.
const (
	retryPause = time.Second
	minPause   = 100 * time.Millisecond // minimum, whatever the server asks for
	maxPause   = time.Minute
	maxResumes = 5 // in succession without any message
)

// handleStream handles the messages of a stream and of the streams that continue it, until
// the request is answered or ctx ends. If the server ends the stream before, it fails the
// exchange.
func (s *streamable) handleStream(ctx context.Context, x *exchange, res *http.Response) {
	body := res.Body
	defer func() { drain(body) }() // the last one
	events := eventstream.NewReader(body, s.cfg.MaxLine)
	idle := 0
	for {
		last := events.ID
		s.handleEvents(events, x)
		if ctx.Err() != nil || x.isAnswered() {
			return
		}
		if x.modern || events.ID == "" {
			s.failExchange(x, toolerr.New(toolerr.ServerOffline, "the server ended the stream before its answer"))
			return
		}
		if idle++; events.ID != last {
			idle = 1
		}
		if idle > maxResumes {
			s.failExchange(x, toolerr.New(toolerr.ServerOffline, "the server ended the stream before its answer, even after %d resumptions", maxResumes))
			return
		}
		next, err := s.resumeStream(ctx, events)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.failExchange(x, toolerr.New(toolerr.ServerOffline, "the server ended the stream before its answer, and it could not be resumed: %w", err))
			return
		case next != nil:
			drain(body)
			body = next.Body
			again := eventstream.NewReader(body, s.cfg.MaxLine)
			again.ID, again.Retry = events.ID, events.Retry
			events = again
		}
	}
}

// handleEvents handles messages until the stream ends or has answered x.
func (s *streamable) handleEvents(events *eventstream.Reader, x *exchange) {
	for {
		e, err := events.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long) && x != nil:
			s.failExchange(x, tooLarge(s.cfg.MaxLine))
		case errors.As(err, &long):
		case err != nil:
			return
		case len(e.Data) > 0 && (e.Name == "" || e.Name == "message"):
			var of json.RawMessage
			if x != nil {
				of = x.id
			}
			s.conn.handleLineOf(e.Data, of)
		}
		if x != nil && x.isAnswered() {
			return
		}
	}
}

// resumeStream requests the events after the last one of a broken stream, after the pause
// that the server asked for. It returns nil, nil if the server could not be reached this
// time. It returns an error if the server refuses the stream, or ctx or the run ends.
func (s *streamable) resumeStream(ctx context.Context, events *eventstream.Reader) (*http.Response, error) {
	pause := retryPause
	if events.Retry > 0 {
		pause = max(events.Retry, minPause)
	}
	if err := sleep(ctx, s.life, pause); err != nil {
		return nil, err
	}
	res, err := s.openStream(ctx, events.ID)
	switch {
	case err != nil:
		return nil, nil //nolint:nilnil // documented
	case res.StatusCode == http.StatusOK && mediaType(res) == "text/event-stream":
		return res, nil
	}
	defer drain(res.Body)
	return nil, s.statusError(res, nil)
}

// openStream sends the GET for a stream of unsolicited messages, or of the events after a
// given id. The caller closes the body.
func (s *streamable) openStream(ctx context.Context, after string) (*http.Response, error) {
	req, err := s.newRequest(ctx, http.MethodGet, s.base, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set(mcp.HeaderLastEventID, after)
	}
	s.setHeaders(req, nil)
	return s.client.Do(req)
}

// startListening starts keepListening in the background. took is the time that the
// previous message took.
func (s *streamable) startListening(took time.Duration) {
	if s.beginWork() != nil {
		return
	}
	open := make(chan struct{})
	opened := sync.OnceFunc(func() { close(open) })
	s.mu.Lock()
	s.listening, s.slowest = open, took
	s.mu.Unlock()
	go func() {
		defer s.work.Done()
		defer opened()
		s.keepListening(opened)
	}()
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		s.endListeningWait(open, opened)
	}()
}

// endListeningWait calls opened when a stream does not open in time, so that calls stop
// waiting for it. The limit follows from the time of the server's other answers: a busy
// server answers neither quickly.
func (s *streamable) endListeningWait(open <-chan struct{}, opened func()) {
	defer opened()
	begin := time.Now()
	for {
		elapsed := time.Since(begin)
		rest := min(s.cfg.ProbeTimeout/6+2*s.slowestAnswer(), s.cfg.StartTimeout) - elapsed
		if rest <= 0 {
			return
		}
		select {
		case <-open:
			return
		case <-s.life.Done():
			return
		case <-time.After(rest):
		}
	}
}

// slowestAnswer returns the longest time of a list of tools, or the time that the running
// one has taken so far if that is longer.
func (s *streamable) slowestAnswer() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slowest := s.slowest
	for _, x := range s.calls {
		if x.method == methodTools {
			slowest = max(slowest, time.Since(x.sent))
		}
	}
	return slowest
}

// awaitListening waits, before a request about which a server may have questions, until
// the stream of unsolicited messages is open or opened was called: many servers send
// questions on that stream, and drop them while it is closed.
func (s *streamable) awaitListening(ctx context.Context, method string) {
	s.mu.Lock()
	open := s.listening
	s.mu.Unlock()
	if open == nil || method == "ping" || strings.HasSuffix(method, "/list") {
		return
	}
	select {
	case <-open:
	case <-ctx.Done():
	}
}

// keepListening keeps the legacy stream of unsolicited messages open, if the server has
// one, and calls opened when it is open or known to be missing. It notices a server that
// cannot be reached any more.
func (s *streamable) keepListening(opened func()) {
	after, pause := "", retryPause
	for began := (time.Time{}); ; {
		res, err := s.openStream(s.life, after)
		opened()
		switch {
		case s.life.Err() != nil:
			return
		case err != nil && isUnsent(err):
			s.endConnection(s.offlineError(err))
			return
		case err != nil: // broken: try again
		case res.StatusCode == http.StatusOK && mediaType(res) == "text/event-stream":
			events := eventstream.NewReader(res.Body, s.cfg.MaxLine)
			// Skip servers that end the stream as soon as it is open.
			if events.ID = after; after == "" && time.Since(began) > 10*retryPause {
				s.conn.refreshLists()
			}
			began = time.Now()
			s.handleEvents(events, nil)
			drain(res.Body)
			after, pause = events.ID, retryPause
			if events.Retry > 0 {
				pause = max(events.Retry, minPause)
			}
		case isTemporary(res.StatusCode):
			drain(res.Body)
			pause = min(2*pause, maxPause)
			if asked, ok := retry.ParseAfter(res.Header.Get("Retry-After"), time.Now()); ok {
				pause = min(max(asked, minPause), maxPause)
			}
		default: // usually 405: the server has no such stream
			drain(res.Body)
			if res.StatusCode == http.StatusNotFound && after != "" {
				s.endConnection(errSessionOver)
			}
			return
		}
		if sleep(s.life, s.life, pause) != nil {
			return
		}
	}
}

// isTemporary reports whether a status may change soon: the server, or a proxy before
// it, is busy or being replaced.
func isTemporary(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
