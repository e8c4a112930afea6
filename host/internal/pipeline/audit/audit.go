// Package audit is the stage that logs every call: one line of JSON when it starts and one
// when it ends.
//
//	{"time":"2026-11-21T20:00:00.000001Z","event":"tool.call.started","id":"5f0c9a1e-1","tool":"grep","server":"grep","caller":"http/9c56cc51","args":{"pattern":"x"}}
//	{"time":"…","event":"tool.call.completed","id":"5f0c9a1e-1","tool":"grep","server":"grep","ms":3.214,"bytes":512}
//	{"time":"…","event":"tool.call.failed","id":"5f0c9a1e-2","tool":"grep","server":"grep","ms":30000.1,"code":"TIMEOUT","error":"…"}
//
// A call whose tool reports an error counts as completed, with "isError":true. Arguments are
// shortened, and values that look like credentials are redacted; results are not logged. "ms"
// excludes the time in which a person was asked. A caller's id, which may be a session id, is
// logged as a hash.
//
// # Guarantees
//
// A call only queues its records. Every 10 ms, if there are any, a goroutine of the log
// redacts, encodes and writes them (a shorter interval would slow the calls down), and syncs
// to the disk once a second and at the end. So a queued record survives the death of the
// process after about 10 ms, and that of the machine after a second.
//
// Records are never dropped for speed: if the writer falls behind, calls wait before they
// start, within their own deadlines; the record of an end always has space. If writing fails,
// as on a full disk, calls continue and their records are lost, which an event audit.lost
// reports as soon as possible. With Required, calls are refused instead until the waiting
// records are written.
package audit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/internal/redact"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config says where the log is and how much of it is kept. Zero values mean
// the defaults.
type Config struct {
	Off      bool
	Dir      string        // of the files; "": nothing is written
	Required bool          // no call without its record
	MaxArgs  int           // bytes kept of a call's arguments; 4 KiB
	FileSize int64         // after how many bytes a new file is begun; 64 MiB
	Keep     int64         // bytes of all files; 512 MiB
	Age      time.Duration // of the oldest file; 30 days
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{{"max_args", int64(c.MaxArgs)}, {"file_size", c.FileSize}, {"keep", c.Keep}, {"age", int64(c.Age)}} {
		if f.value < 0 {
			return fmt.Errorf("audit: %s must not be negative, got %d", f.name, f.value)
		}
	}
	if c.Off && c.Required {
		return fmt.Errorf("audit: it cannot be off and required")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.MaxArgs == 0 {
		c.MaxArgs = 4 << 10
	}
	if c.FileSize == 0 {
		c.FileSize = 64 << 20
	}
	if c.Keep == 0 {
		c.Keep = 512 << 20
	}
	if c.Age == 0 {
		c.Age = 30 * 24 * time.Hour
	}
	return c
}

// A Sink keeps records for good: each is one line of JSON without its end.
type Sink interface {
	// Append keeps all of a batch, or returns an error.
	Append(ctx context.Context, records ...[]byte) error
	// Sync is called now and then, and before Close.
	Sync() error
	Close() error
}

// maxBuffer bounds the waiting records in bytes, except for the ends of started calls.
const maxBuffer = 8 << 20

const timeFormat = "2006-01-02T15:04:05.000000Z"

// record is one event, not encoded yet.
type record struct {
	at     time.Time
	event  string
	number uint64
	tool   *call.Tool
	door   string
	id     string
	user   string
	depth  int
	args   json.RawMessage // of a start
	took   time.Duration   // of an end
	bytes  int             // of a result
	failed bool            // isError
	code   toolerr.Code
	text   string // of an error
}

// weight returns the number of bytes that a record counts in the buffer.
func (r record) weight() int { return 256 + len(r.args) + len(r.text) }

// A Log writes records to a sink. It is safe for concurrent use. Close it.
type Log struct {
	cfg    Config
	sink   Sink
	run    string // tells this run's ids apart
	number atomic.Uint64

	wake    chan struct{} // holds one: there is something to write, or the end
	hurry   chan struct{} // holds one: it must be written now, there is no room
	closing chan struct{} // closed by Close
	done    chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	pending []record
	weight  int
	room    chan struct{} // closed when the writer has taken what is pending; nil: nobody waits
	closed  bool
	started bool        // the writer
	fault   error       // why the last batch was not written; nil: it was
	lost    int         // records since then
	ever    int         // records lost in all
	onFault func(error) // nil: nobody is told, or was
}

// OnFault sets a function that is called with the error when records cannot be written
// for the first time. It must be set before the first use.
func (l *Log) OnFault(f func(error)) { l.onFault = f }

// New returns a log that nothing has been written to. It starts its writer,
// and the sink is first used, with the first call.
func New(c Config, sink Sink) *Log {
	var run [4]byte
	rand.Read(run[:]) //nolint:errcheck // never fails
	return &Log{
		cfg: c.withDefaults(), sink: sink, run: hex.EncodeToString(run[:]),
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
}

// Stage records calls.
func (l *Log) Stage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		r := record{at: time.Now(), event: "tool.call.started", number: l.number.Add(1), tool: req.Tool}
		r.door, r.id, r.user, r.depth = req.Caller.EntryPoint, req.Caller.ID, req.Caller.User, req.Caller.Depth
		args, err := req.Arguments()
		if err != nil {
			return nil, err // params that are no JSON: nothing was called
		}
		r.args = args
		if err := l.begin(ctx, r); err != nil {
			return nil, err
		}
		ctx, took := call.MeasureTime(ctx)
		res, err := next(ctx, req)
		end := record{at: time.Now(), event: "tool.call.completed", number: r.number, tool: req.Tool}
		end.took = took()
		if err != nil {
			end.event, end.code, end.text = "tool.call.failed", toolerr.CodeOf(err), err.Error()
		} else {
			end.bytes, end.failed = len(res.Raw), res.IsError()
		}
		l.mu.Lock()
		l.add(end)
		l.mu.Unlock()
		return res, err
	}
}

// begin hands over the record of a start, waiting for room.
func (l *Log) begin(ctx context.Context, r record) error {
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			return toolerr.New(toolerr.ServerOffline, "the host is shutting down")
		case l.fault != nil && l.cfg.Required:
			err := toolerr.New(toolerr.PolicyDenied, "calls are refused while the audit log cannot be written: %w", l.fault)
			l.mu.Unlock()
			return err
		case l.weight == 0 || l.weight+r.weight() <= maxBuffer:
			l.add(r)
			l.mu.Unlock()
			return nil
		}
		if l.room == nil {
			l.room = make(chan struct{})
		}
		room := l.room
		wake(l.hurry)
		l.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add hands a record to the writer. l.mu is held. After Close there is no
// writer; the ends of calls that outlive the host are nobody's.
func (l *Log) add(r record) {
	if l.closed {
		return
	}
	l.pending = append(l.pending, r)
	l.weight += r.weight()
	if !l.started {
		l.started = true
		go l.write()
	}
	if len(l.pending) == 1 {
		wake(l.wake)
	}
	if l.weight > maxBuffer/2 {
		wake(l.hurry)
	}
}

// wake wakes the receiver of a channel with capacity 1.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Lost returns how many records could not be written, and why not the last
// ones; nil: the last ones were.
func (l *Log) Lost() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ever, l.fault
}

// Close writes the waiting records and closes the sink. Calls must have ended.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.done
		return nil
	}
	l.closed = true
	close(l.closing)
	if !l.started {
		close(l.done)
	}
	wake(l.wake)
	l.mu.Unlock()
	<-l.done
	err := l.sink.Close()
	if _, fault := l.Lost(); fault != nil {
		return fault
	}
	return err
}

// ordinary returns the arguments of a tool that are no credentials in spite of
// their names: the session of bash is a name that the model chooses.
func ordinary(tool *call.Tool) []string {
	if tool.Server == "bash" && tool.Original == "bash" {
		return []string{"session"}
	}
	return nil
}

// append writes a record as JSON, without the line's end.
func (l *Log) append(dst []byte, r record) []byte {
	dst = r.at.UTC().AppendFormat(append(dst, `{"time":"`...), timeFormat)
	dst = append(append(append(dst, `","event":"`...), r.event...), `","id":"`...)
	dst = strconv.AppendUint(append(append(dst, l.run...), '-'), r.number, 10)
	dst = jsonrpc.AppendString(append(dst, `","tool":`...), r.tool.Name)
	dst = jsonrpc.AppendString(append(dst, `,"server":`...), r.tool.Server)
	if r.args != nil {
		dst = jsonrpc.AppendString(append(dst, `,"caller":`...), r.caller())
		if r.depth > 0 {
			dst = strconv.AppendInt(append(dst, `,"depth":`...), int64(r.depth), 10)
		}
		dst = redact.AppendJSON(append(dst, `,"args":`...), r.args, l.cfg.MaxArgs, ordinary(r.tool)...)
		return append(dst, '}')
	}
	dst = strconv.AppendFloat(append(dst, `,"ms":`...), float64(r.took.Microseconds())/1000, 'f', -1, 64)
	if r.code != "" {
		dst = append(append(append(dst, `,"code":"`...), r.code...), `","error":`...)
		dst = redact.AppendText(dst, r.text)
		return append(dst, '}')
	}
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), int64(r.bytes), 10)
	if r.failed {
		dst = append(dst, `,"isError":true`...)
	}
	return append(dst, '}')
}

// caller names who called: the door with the user, or with a hash of the id if
// nobody signed in.
func (r record) caller() string {
	if r.user != "" {
		return r.door + "/" + r.user
	}
	return Caller(r.door, r.id)
}

// Caller names a caller in the log that did not sign in: its door and a hash of
// its id.
func Caller(door, id string) string {
	if id == "" {
		return door
	}
	sum := sha256.Sum256([]byte(id))
	return door + "/" + hex.EncodeToString(sum[:4])
}
