// Package eventstream reads server-sent events, as the HTML specification defines them
// ("Server-sent events", section 9.2.6), with a bound on each.
package eventstream

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// An Event is one event of a stream.
type Event struct {
	Name string // "": message
	Data []byte
	ID   string // id of this event, or else of the last event with an id
}

// A Reader reads a stream of events, with a bound on the data of each.
type Reader struct {
	ID    string        // id of the last event with an id
	Retry time.Duration // time requested by the server; 0: none

	lines *jsonrpc.Reader
	max   int
}

// Limits of the fields other than data.
const (
	maxField = 4 << 10 // of an id
	maxRetry = time.Minute
)

// NewReader returns a reader of events of at most max bytes.
func NewReader(src io.Reader, maxBytes int) *Reader {
	return &Reader{lines: jsonrpc.NewReader(&lineEndReader{src: src}, maxBytes+len("data: ")), max: maxBytes}
}

// Next returns the next event with data. It skips events without data and a last event
// that is incomplete. The error is the stream's (io.EOF at its end), or a
// *jsonrpc.TooLongError for an event above the bound, after which reading can continue.
func (r *Reader) Next() (Event, error) {
	var e Event
	var some bool
	var long *jsonrpc.TooLongError
	for {
		line, err := r.lines.ReadLine()
		switch {
		case errors.As(err, &long):
			long.Head = bytes.TrimPrefix(bytes.TrimPrefix(long.Head, []byte("data:")), []byte(" "))
			continue
		case err != nil:
			return Event{}, err // an incomplete event does not count
		case len(line) > 0:
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case string(name) != "data":
				r.applyField(&e, string(name), value)
			case len(e.Data)+len(value) > r.max:
				long = &jsonrpc.TooLongError{Max: r.max, Head: bytes.Clone(e.Data[:min(len(e.Data), 256)])}
				e.Data = nil
			case some:
				e.Data = append(append(e.Data, '\n'), value...)
			default:
				e.Data, some = value, true
			}
		case long != nil:
			return Event{}, long
		case some:
			e.ID = r.ID
			return e, nil
		default:
			e = Event{}
		}
	}
}

// applyField applies a field other than data to the event, or to the reader's last id and
// retry time. It ignores unknown fields and wrong values.
func (r *Reader) applyField(e *Event, name string, value []byte) {
	switch name {
	case "event":
		e.Name = string(value[:min(len(value), maxField)])
	case "id":
		if len(value) <= maxField && bytes.IndexByte(value, 0) < 0 {
			r.ID = string(value)
		}
	case "retry":
		if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
			r.Retry = min(time.Duration(min(ms, 1<<20))*time.Millisecond, maxRetry)
		}
	}
}

// lineEndReader converts CR, LF and CRLF to LF. JSON has none of them inside strings.
type lineEndReader struct {
	src io.Reader
	cr  bool // the last byte was a CR
}

// Read reads from the source with all line ends as \n.
func (l *lineEndReader) Read(p []byte) (int, error) {
	for {
		n, err := l.src.Read(p)
		if n = l.convert(p[:n]); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// convert replaces CR and CR LF by LF in p, also across reads, and returns the new
// length.
func (l *lineEndReader) convert(p []byte) int {
	if l.cr && len(p) > 0 && p[0] == '\n' {
		l.cr = false
		copy(p, p[1:])
		p = p[:len(p)-1]
	}
	if len(p) == 0 {
		return 0
	}
	l.cr = p[len(p)-1] == '\r'
	if bytes.IndexByte(p, '\r') < 0 {
		return len(p)
	}
	out, before := p[:0], byte(0)
	for _, b := range p {
		switch {
		case b == '\r':
			out = append(out, '\n')
		case b == '\n' && before == '\r':
		default:
			out = append(out, b)
		}
		before = b
	}
	return len(out)
}
