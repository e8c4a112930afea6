// Package audit is the stage that logs every call: one line of JSON when it starts and one
// when it ends.
//
//	{"time":"2026-11-21T20:00:00.000001Z","event":"tool.call.started","id":"5f0c9a1e-1","tool":"grep","server":"grep","caller":"http/9c56cc51","args":{"pattern":"x"}}
//	{"time":"…","event":"tool.call.completed","id":"5f0c9a1e-1","tool":"grep","server":"grep","ms":3.214,"bytes":512}
//	{"time":"…","event":"tool.call.failed","id":"5f0c9a1e-2","tool":"grep","server":"grep","ms":30000.1,"code":"TIMEOUT","error":"…"}
//
// A host that the sandbox of a server refused is logged once for each start of the server:
//
//	{"time":"…","event":"sandbox.refused","server":"listing","refused":"…"}
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

// Config holds the location and the limits of the log. Zero values mean the defaults.
type Config struct {
	Off      bool
	Dir      string        // directory of the files; "": no log
	Required bool          // refuse calls that cannot be recorded
	MaxArgs  int           // recorded bytes of a call's arguments; 4 KiB
	FileSize int64         // size at which a new file begins; 64 MiB
	Keep     int64         // largest size of all files; 512 MiB
	Age      time.Duration // largest age of a file; 30 days
}

// Validate returns an error that names the wrong field.
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

// withDefaults returns the settings with defaults for the sizes and times that are 0.
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

// A Sink stores records. Each is a line of JSON without the line end.
type Sink interface {
	// Append stores all records of a batch, or returns an error.
	Append(ctx context.Context, records ...[]byte) error
	// Sync is called every second, and before Close.
	Sync() error
	Close() error
}

// maxBuffer bounds the waiting records in bytes, except for the ends of started calls.
const maxBuffer = 8 << 20

// timeFormat is the format of times in the log, in UTC.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// record is an event before it is encoded.
type record struct {
	at         time.Time
	event      string
	number     uint64
	tool       *call.Tool
	entryPoint string
	id         string
	user       string
	depth      int
	args       json.RawMessage // of a start event
	duration   time.Duration   // of an end event
	bytes      int             // size of the result
	failed     bool            // the result has isError
	code       toolerr.Code
	text       string // text of the error, or of the refusal
	server     string // of a refusal, which has no tool
}

// weight returns the number of bytes that a record counts in the buffer.
func (r record) weight() int { return 256 + len(r.args) + len(r.text) }

// A Log writes records to a sink. It is safe for concurrent use. Close it.
type Log struct {
	cfg    Config
	sink   Sink
	run    string // distinguishes the ids of this run
	number atomic.Uint64

	wake    chan struct{} // receives an item if there is something to write, and at the end
	full    chan struct{} // receives an item if the buffer is full
	closing chan struct{} // closed by Close
	done    chan struct{} // closed when the writer has ended

	mu        sync.Mutex
	pending   []record
	weight    int
	room      chan struct{} // closed when the writer has emptied the buffer; nil: nobody waits
	closed    bool
	started   bool        // the writer was started
	fault     error       // error of the last batch; nil: it was written
	lostSince int         // lost records since then
	lostTotal int         // all lost records
	onFault   func(error) // called once; nil: not set, or called already
}

// OnFault sets a function that is called with the error when records cannot be written
// for the first time. It must be set before the first use.
func (l *Log) OnFault(f func(error)) { l.onFault = f }

// New returns an empty log. The first call starts the writer and uses the sink.
func New(c Config, sink Sink) *Log {
	var run [4]byte
	rand.Read(run[:]) //nolint:errcheck // never fails
	return &Log{
		cfg: c.withDefaults(), sink: sink, run: hex.EncodeToString(run[:]),
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
}

// Stage returns a handler that records the beginning and the end of a call, which it makes
// with next. With Config.Required it refuses calls, with POLICY_DENIED, while the log
// cannot be written. If too many records wait, it waits for the writer.
func (l *Log) Stage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		r := record{at: time.Now(), event: "tool.call.started", number: l.number.Add(1), tool: req.Tool}
		r.entryPoint, r.id, r.user, r.depth = req.Caller.EntryPoint, req.Caller.ID, req.Caller.User, req.Caller.Depth
		args, err := req.Arguments()
		if err != nil {
			return nil, err // the params are not JSON, so no tool is called
		}
		r.args = args
		if err := l.begin(ctx, r); err != nil {
			return nil, err
		}
		ctx, took := call.MeasureTime(ctx)
		res, err := next(ctx, req)
		end := record{at: time.Now(), event: "tool.call.completed", number: r.number, tool: req.Tool}
		end.duration = took()
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

// SandboxRefused records that the sandbox of a server refused something. The record is
// dropped and counted as lost if the buffer is full.
func (l *Log) SandboxRefused(server, refused string) {
	r := record{at: time.Now(), event: "sandbox.refused", server: server, text: refused}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.weight+r.weight() > maxBuffer {
		l.lostSince++
		l.lostTotal++
		return
	}
	l.add(r)
}

// begin adds the record of a call's start, and waits for room in the buffer. It returns an
// error if ctx ends first, if the log is closed, or if records are required and cannot be
// written.
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
		signal(l.full)
		l.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add adds a record to the buffer. l.mu is held. After Close the record is dropped:
// the end of a call that outlives the host is not recorded.
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
		signal(l.wake)
	}
	if l.weight > maxBuffer/2 {
		signal(l.full)
	}
}

// signal sends to a channel with capacity 1 without blocking.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Lost returns the number of records that could not be written, and the error of the
// last ones; nil: the last ones were written.
func (l *Log) Lost() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostTotal, l.fault
}

// Close writes the waiting records and closes the sink; it waits for both. Calls must have
// ended. It returns the error of the latest write if records were lost, or that of closing.
// A second Close does nothing.
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
	signal(l.wake)
	l.mu.Unlock()
	<-l.done
	err := l.sink.Close()
	if _, fault := l.Lost(); fault != nil {
		return fault
	}
	return err
}

// nonSecretArguments returns the arguments of a tool that are not credentials although
// their names suggest it: bash's session is a name that the model chooses.
func nonSecretArguments(tool *call.Tool) []string {
	if tool.Server == "bash" && tool.Original == "bash" {
		return []string{"session"}
	}
	return nil
}

// appendRecord appends a record as JSON without a line end.
func (l *Log) appendRecord(dst []byte, r record) []byte {
	dst = r.at.UTC().AppendFormat(append(dst, `{"time":"`...), timeFormat)
	dst = append(append(dst, `","event":"`...), r.event...)
	if r.tool == nil {
		dst = jsonrpc.AppendString(append(dst, `","server":`...), r.server)
		return append(redact.AppendJSONString(append(dst, `,"refused":`...), r.text), '}')
	}
	dst = append(dst, `","id":"`...)
	dst = strconv.AppendUint(append(append(dst, l.run...), '-'), r.number, 10)
	dst = jsonrpc.AppendString(append(dst, `","tool":`...), r.tool.Name)
	dst = jsonrpc.AppendString(append(dst, `,"server":`...), r.tool.Server)
	if r.args != nil {
		dst = jsonrpc.AppendString(append(dst, `,"caller":`...), r.caller())
		if r.depth > 0 {
			dst = strconv.AppendInt(append(dst, `,"depth":`...), int64(r.depth), 10)
		}
		dst = redact.AppendJSON(append(dst, `,"args":`...), r.args, l.cfg.MaxArgs, nonSecretArguments(r.tool)...)
		return append(dst, '}')
	}
	dst = strconv.AppendFloat(append(dst, `,"ms":`...), float64(r.duration.Microseconds())/1000, 'f', -1, 64)
	if r.code != "" {
		dst = append(append(append(dst, `,"code":"`...), r.code...), `","error":`...)
		dst = redact.AppendJSONString(dst, r.text)
		return append(dst, '}')
	}
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), int64(r.bytes), 10)
	if r.failed {
		dst = append(dst, `,"isError":true`...)
	}
	return append(dst, '}')
}

// caller returns the caller's name in the log: the entry point with the user, or with
// a hash of the id if nobody signed in.
func (r record) caller() string {
	if r.user != "" {
		return r.entryPoint + "/" + r.user
	}
	return Caller(r.entryPoint, r.id)
}

// Caller returns the name in the log of a caller who is not signed in: the entry point
// with a hash of the caller's id.
func Caller(entryPoint, id string) string {
	if id == "" {
		return entryPoint
	}
	sum := sha256.Sum256([]byte(id))
	return entryPoint + "/" + hex.EncodeToString(sum[:4])
}
