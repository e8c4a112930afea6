package upstream

import (
	"context"
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

// How a broken stream is taken up again.
const (
	retryPause = time.Second
	leastPause = 100 * time.Millisecond // whatever the server asks for
	mostPause  = time.Minute
	maxResumes = 5 // in a row that bring nothing
)

// stream takes the messages of a stream, and of those that continue it, until
// the request is answered.
func (s *streamable) stream(ctx context.Context, x *exchange, res *http.Response) {
	body := res.Body
	defer func() { drain(body) }() // the last one
	events := eventstream.NewReader(body, s.cfg.MaxLine)
	idle := 0
	for {
		last := events.ID
		s.events(events, x)
		if ctx.Err() != nil || x.answered() {
			return
		}
		if x.modern || events.ID == "" {
			s.failed(x, toolerr.New(toolerr.ServerOffline, "the server ended the stream before its answer"))
			return
		}
		if idle++; events.ID != last {
			idle = 1
		}
		if idle > maxResumes {
			s.failed(x, toolerr.New(toolerr.ServerOffline, "the server ended the stream before its answer, even after %d resumptions", maxResumes))
			return
		}
		next, err := s.resume(ctx, events)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.failed(x, toolerr.New(toolerr.ServerOffline, "the server ended the stream before its answer, and it could not be resumed: %w", err))
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

// events takes messages until the stream ends, or has answered x.
func (s *streamable) events(events *eventstream.Reader, x *exchange) {
	for {
		e, err := events.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long) && x != nil:
			s.failed(x, tooLarge(s.cfg.MaxLine))
		case errors.As(err, &long):
		case err != nil:
			return
		case len(e.Data) > 0 && (e.Name == "" || e.Name == "message"):
			s.conn.take(e.Data)
		}
		if x != nil && x.answered() {
			return
		}
	}
}

// resume asks for what follows the last event of a broken stream, after the
// pause that the server asked for. It returns nil when the server could not be
// reached this time.
func (s *streamable) resume(ctx context.Context, events *eventstream.Reader) (*http.Response, error) {
	pause := retryPause
	if events.Retry > 0 {
		pause = max(events.Retry, leastPause)
	}
	if err := sleep(ctx, s.life, pause); err != nil {
		return nil, err
	}
	res, err := s.get(ctx, events.ID)
	switch {
	case err != nil:
		return nil, nil //nolint:nilnil // documented
	case res.StatusCode == http.StatusOK && mediaType(res) == "text/event-stream":
		return res, nil
	}
	defer drain(res.Body)
	return nil, s.refusal(res, nil)
}

// get opens a stream of what the server says unasked, or of what follows an
// event.
func (s *streamable) get(ctx context.Context, after string) (*http.Response, error) {
	req, err := s.request(ctx, http.MethodGet, s.base, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set(mcp.HeaderLastEventID, after)
	}
	s.label(req, nil)
	return s.client.Do(req)
}

// listenFirst opens the stream of what the server says unasked, in the
// background. took is how long the message before took.
func (s *streamable) listenFirst(took time.Duration) {
	if s.begin() != nil {
		return
	}
	open := make(chan struct{})
	opened := sync.OnceFunc(func() { close(open) })
	s.mu.Lock()
	s.open, s.slowest = open, took
	s.mu.Unlock()
	go func() {
		defer s.work.Done()
		defer opened()
		s.listen(opened)
	}()
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		s.limitOpening(open, opened)
	}()
}

// limitOpening ends the wait for a stream that does not open. How long a server
// may need for that follows from how long it needs for other requests: a busy
// one answers neither in time.
func (s *streamable) limitOpening(open <-chan struct{}, opened func()) {
	defer opened()
	begin := time.Now()
	for {
		elapsed := time.Since(begin)
		rest := min(s.cfg.ProbeTimeout/6+2*s.slow(), s.cfg.StartTimeout) - elapsed
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

// slow is the longest time that an answer took, or that the server has had for
// its list of tools so far.
func (s *streamable) slow() time.Duration {
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

// untilOpen waits, before a request that a server may have questions about,
// for the stream on which many a server sends them: it drops what it would say
// before that is open. One that sends nothing of it, not even that it is open,
// until it has something to say is given time to get the request for it.
func (s *streamable) untilOpen(ctx context.Context, method string) {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if open == nil || method == "ping" || strings.HasSuffix(method, "/list") {
		return
	}
	select {
	case <-open:
	case <-ctx.Done():
	}
}

// listen keeps the legacy stream of what the server says unasked, where the
// server has one, and says when it is open or is not to be had. A server that
// cannot be reached any more is noticed here.
func (s *streamable) listen(opened func()) {
	after, pause := "", retryPause
	for began := (time.Time{}); ; {
		res, err := s.get(s.life, after)
		opened()
		switch {
		case s.life.Err() != nil:
			return
		case err != nil && unsent(err):
			s.over(s.unreachable(err))
			return
		case err != nil: // broken; again
		case res.StatusCode == http.StatusOK && mediaType(res) == "text/event-stream":
			events := eventstream.NewReader(res.Body, s.cfg.MaxLine)
			// Not of a server that ends them as soon as they are open.
			if events.ID = after; after == "" && time.Since(began) > 10*retryPause {
				s.conn.missed()
			}
			began = time.Now()
			s.events(events, nil)
			drain(res.Body)
			after, pause = events.ID, retryPause
			if events.Retry > 0 {
				pause = max(events.Retry, leastPause)
			}
		case passing(res.StatusCode):
			drain(res.Body)
			pause = min(2*pause, mostPause)
			if asked, ok := retry.ParseAfter(res.Header.Get("Retry-After"), time.Now()); ok {
				pause = min(max(asked, leastPause), mostPause)
			}
		default: // most often 405: it has none
			drain(res.Body)
			if res.StatusCode == http.StatusNotFound && after != "" {
				s.over(errSessionOver)
			}
			return
		}
		if sleep(s.life, s.life, pause) != nil {
			return
		}
	}
}

// passing reports whether a refusal is one of now: the server, or what stands
// before it, is busy or being replaced.
func passing(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
