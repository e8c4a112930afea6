package upstream

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// event is one event of a stream, as the HTML specification defines them
// ("Server-sent events", section 9.2.6).
type event struct {
	name string // "": message
	data []byte
	id   string // of this event, or of the last one before that had any
}

// eventReader reads a stream of events, with a bound on the data of each.
type eventReader struct {
	lines *jsonrpc.Reader
	max   int
	id    string
	retry time.Duration // that the server asked for; 0: none
}

// Bounds of what is no data.
const (
	maxField = 4 << 10 // of an id
	maxRetry = time.Minute
)

func newEventReader(src io.Reader, max int) *eventReader {
	return &eventReader{lines: jsonrpc.NewReader(&lineEnds{src: src}, max+len("data: ")), max: max}
}

// next returns the next event that has data. Its error is the stream's, or a
// *jsonrpc.TooLongError after which reading can go on.
func (r *eventReader) next() (event, error) {
	var e event
	var some bool
	var long *jsonrpc.TooLongError
	for {
		line, err := r.lines.ReadLine()
		switch {
		case errors.As(err, &long):
			long.Head = bytes.TrimPrefix(bytes.TrimPrefix(long.Head, []byte("data:")), []byte(" "))
			continue
		case err != nil:
			return event{}, err // what was begun does not count
		case len(line) > 0:
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case string(name) != "data":
				r.field(&e, string(name), value)
			case len(e.data)+len(value) > r.max:
				long = &jsonrpc.TooLongError{Max: r.max, Head: bytes.Clone(e.data[:min(len(e.data), 256)])}
				e.data = nil
			case some:
				e.data = append(append(e.data, '\n'), value...)
			default:
				e.data, some = value, true
			}
		case long != nil:
			return event{}, long
		case some:
			e.id = r.id
			return e, nil
		default:
			e = event{}
		}
	}
}

func (r *eventReader) field(e *event, name string, value []byte) {
	switch name {
	case "event":
		e.name = string(value[:min(len(value), maxField)])
	case "id":
		if len(value) <= maxField && bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	case "retry":
		if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
			r.retry = min(time.Duration(min(ms, 1<<20))*time.Millisecond, maxRetry)
		}
	}
}

// lineEnds makes one LF of each CR, LF or CRLF. JSON has none of them inside
// strings.
type lineEnds struct {
	src io.Reader
	cr  bool // the last byte read was one
}

func (l *lineEnds) Read(p []byte) (int, error) {
	for {
		n, err := l.src.Read(p)
		if n = l.convert(p[:n]); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (l *lineEnds) convert(p []byte) int {
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
