package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/httpguard"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// The time that Close waits for the last spans, and the number of attempts to send a
// batch to a busy collector.
const (
	closeTimeout      = 2 * time.Second
	maxExportAttempts = 4
)

// A Tracer sends spans to a collector. It is safe for concurrent use. Close it after
// the last call.
type Tracer struct {
	cfg    Config
	scope  string // version of the host
	client *http.Client

	queue          chan *span
	begin          sync.Once // starts the goroutine with the first span
	closing        chan struct{}
	ended          chan struct{}
	life           context.Context // of the requests
	cancelRequests context.CancelFunc

	mu     sync.RWMutex
	closed bool

	sent, dropped atomic.Int64
	fault         atomic.Pointer[error]
}

// New returns a tracer. It sends nothing before the first span.
func New(c Config, version string) *Tracer {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: 90 * time.Second}
	t := &Tracer{
		cfg: c, scope: version, queue: make(chan *span, c.Queue), closing: make(chan struct{}), ended: make(chan struct{}),
		client: &http.Client{Transport: httpguard.RefuseUpgrades(transport), Timeout: c.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // headers are only for the collector
		}},
	}
	t.life, t.cancelRequests = context.WithCancel(context.Background())
	return t
}

// Sent returns the numbers of accepted and of lost spans, and the last error; nil: no
// error since the last success.
func (t *Tracer) Sent() (sent, dropped int64, err error) {
	if fault := t.fault.Load(); fault != nil {
		err = *fault
	}
	return t.sent.Load(), t.dropped.Load(), err
}

// enqueue queues a span for sending, and drops it if the queue is full or the tracer
// closed. The first one starts the sending goroutine.
func (t *Tracer) enqueue(s *span) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return
	}
	t.begin.Do(func() { go t.run() })
	select {
	case t.queue <- s:
	default:
		t.dropped.Add(1)
	}
}

// Close sends the queued spans, for at most two seconds.
func (t *Tracer) Close() {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	if !closed {
		close(t.queue)
		close(t.closing)
	}
	t.mu.Unlock()
	t.begin.Do(func() { close(t.ended) })
	timer := time.AfterFunc(closeTimeout, t.cancelRequests)
	<-t.ended
	timer.Stop()
	t.cancelRequests()
	t.client.CloseIdleConnections()
}

// run sends batches until the queue is closed and empty.
func (t *Tracer) run() {
	defer close(t.ended)
	for open := true; open; {
		var batch []*span
		batch, open = t.gather()
		if len(batch) == 0 {
			continue
		}
		if err := t.export(batch); err != nil {
			t.dropped.Add(int64(len(batch)))
			t.fault.Store(&err)
			continue
		}
		t.fault.Store(nil)
	}
}

// gather waits for the next batch and returns it: at most Config.Batch spans, or those of
// the time Config.Delay. open is false after the last one.
func (t *Tracer) gather() (batch []*span, open bool) {
	s, open := <-t.queue
	if !open {
		return nil, false
	}
	batch = append(batch, s)
	late := time.NewTimer(t.cfg.Delay)
	defer late.Stop()
	for len(batch) < t.cfg.Batch {
		select {
		case s, open := <-t.queue:
			if !open {
				return batch, false
			}
			batch = append(batch, s)
		case <-late.C:
			return batch, true
		}
	}
	return batch, true
}

// export sends a batch, and repeats it, at most tries times, if the collector is busy or
// cannot be reached. It counts the accepted and rejected spans. After an error none of them
// was accepted, and the caller counts them.
func (t *Tracer) export(batch []*span) error {
	body, err := jsonrpc.Marshal(t.encode(batch))
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		rejected, wait, err := t.post(body)
		if err == nil {
			t.sent.Add(int64(len(batch)) - rejected)
			t.dropped.Add(rejected)
			return nil
		}
		if wait < 0 || try == maxExportAttempts {
			return err
		}
		timer := time.NewTimer(max(wait, time.Second<<(try-1)))
		select {
		case <-timer.C:
		case <-t.closing: // there is no time to wait
			timer.Stop()
			return err
		}
	}
}

// maxWait bounds the pause that a collector can demand with Retry-After.
const maxWait = 30 * time.Second

// post sends one request. After an error, wait is the time until the next attempt,
// negative if another attempt is useless.
func (t *Tracer) post(body []byte) (rejected int64, wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(t.life, http.MethodPost, t.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return 0, -1, errors.New("the collector's URL cannot be used")
	}
	for name, value := range t.cfg.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()                                     //nolint:errcheck // all is read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // so that the connection can be reused
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300 && err == nil:
		return rejectedSpans(answer), 0, nil
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err == nil {
			wait = min(time.Duration(max(0, seconds))*time.Second, maxWait)
		}
		return 0, wait, fmt.Errorf("the collector answered %s", resp.Status)
	}
	return 0, -1, fmt.Errorf("the collector answered %s", resp.Status)
}

// rejectedSpans returns the number of spans that an answer reports as rejected.
func rejectedSpans(answer []byte) int64 {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or one in quotes
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.Trim(string(a.PartialSuccess.RejectedSpans), `"`), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// The JSON encoding of OTLP/HTTP: ids in hex, 64-bit numbers as strings.
type (
	otlpRequest struct {
		ResourceSpans []otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []otlpScope `json:"scopeSpans"`
	}
	otlpScope struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		State      string          `json:"traceState,omitempty"`
		Flags      int             `json:"flags"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes"`
		Status     otlpStatus      `json:"status"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		Text string `json:"stringValue"`
	}
)

// maxValue bounds the value of an attribute in bytes.
const maxValue = 1024

// attributeOf returns an attribute with its value shortened to maxValue bytes.
func attributeOf(key, value string) otlpAttribute {
	if len(value) > maxValue {
		value = strings.ToValidUTF8(value[:maxValue], "") + "…"
	}
	return otlpAttribute{key, otlpValue{value}}
}

// Flags of a span besides the sampled flag: whether the context of its parent is known
// to be remote.
const (
	flagSampled   = 0x1
	flagHasRemote = 0x100
	flagIsRemote  = 0x200
	statusError   = 2
)

// encode returns the OTLP request with a batch of spans.
func (t *Tracer) encode(batch []*span) otlpRequest {
	var r otlpResource
	for _, key := range slices.Sorted(maps.Keys(t.cfg.Resource)) {
		r.Resource.Attributes = append(r.Resource.Attributes, attributeOf(key, t.cfg.Resource[key]))
	}
	if t.cfg.Resource["service.version"] == "" {
		r.Resource.Attributes = append(r.Resource.Attributes, attributeOf("service.version", t.scope))
	}
	r.ScopeSpans = make([]otlpScope, 1)
	scope := &r.ScopeSpans[0]
	scope.Scope.Name, scope.Scope.Version = "github.com/toolroom-mcp/toolroom/host", t.scope
	for _, s := range batch {
		out := otlpSpan{
			TraceID: hex.EncodeToString(s.id.trace[:]), SpanID: hex.EncodeToString(s.id.span[:]), State: s.state,
			Flags: flagSampled | flagHasRemote, Name: attributeOf("", s.name).Value.Text, Kind: s.kind,
			Start: strconv.FormatInt(s.begin.UnixNano(), 10), End: strconv.FormatInt(s.begin.Add(s.duration).UnixNano(), 10),
			Attributes: []otlpAttribute{},
		}
		if s.parent != [8]byte{} {
			out.Parent = hex.EncodeToString(s.parent[:])
		}
		if s.remote {
			out.Flags |= flagIsRemote
		}
		for _, a := range s.attrs {
			out.Attributes = append(out.Attributes, attributeOf(a.key, a.value))
		}
		if s.errorType != "" {
			out.Status = otlpStatus{Message: attributeOf("", s.errorText).Value.Text, Code: statusError}
		}
		scope.Spans = append(scope.Spans, out)
	}
	return otlpRequest{[]otlpResource{r}}
}
