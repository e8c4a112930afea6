package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// sharedWire is the wire to a process that SharedServers runs.
type sharedWire struct {
	*writer
	cfg    Config
	conn   net.Conn
	in     *jsonrpc.Reader
	result attachResult
	ids    sharedIDs

	stale     atomic.Bool // the process serves other roots than this host, or was replaced
	rootsSeen chan bool   // capacity 1: an answer to methodRoots, whether to move

	mu          sync.Mutex
	roots       []string // as last sent
	description wireDescription
	ended       error // the reason that SharedServers gave
}

// errUnavailable means that the process for shared servers cannot be reached or started.
var errUnavailable = errors.New("servers are not shared")

// attachShared connects to the shared process of a server and starts it if it does not
// run. The error wraps errUnavailable if the server can only be run unshared. It tries
// twice, since the process that shares servers may be ending.
func attachShared(ctx context.Context, cfg Config, marks []string, replaces int) (*sharedWire, error) {
	w, err := attachOnce(ctx, cfg, marks, replaces)
	if errors.Is(err, errUnavailable) && !errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		w, err = attachOnce(ctx, cfg, marks, replaces)
	}
	return w, err
}

// attachOnce connects to the process that runs shared servers and attaches to one. replaces
// is the id of a process to replace; 0: none. It returns errUnavailable if it cannot
// connect. Other errors are answers of that process, or the error of ctx.
func attachOnce(ctx context.Context, cfg Config, marks []string, replaces int) (*sharedWire, error) {
	request, err := attachRequestOf(cfg, marks, replaces)
	if err != nil {
		return nil, err
	}
	params, err := jsonrpc.Marshal(request)
	if err != nil {
		return nil, err
	}
	conn, err := cfg.Share.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // the use tells
	w := &sharedWire{
		writer: newWriter(conn, cfg.WriteTimeout), cfg: cfg, conn: conn, roots: request.Roots,
		in: jsonrpc.NewReader(conn, cfg.MaxLine), rootsSeen: make(chan bool, 1),
	}
	err = w.attach(ctx, append(jsonrpc.AppendRequest(nil, json.RawMessage("0"), MethodAttach, params), '\n'))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close() //nolint:errcheck // nothing is lost
		return nil, err
	}
	return w, nil
}

// attachConfirmTimeout is the longest time in which SharedServers confirm an attachRequest.
const attachConfirmTimeout = 2 * time.Second

// connectionLost returns the error for a connection to SharedServers that failed before
// the answer to the attachRequest.
func connectionLost(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: the process that runs them did not answer within %v: %w", errUnavailable, attachConfirmTimeout, os.ErrDeadlineExceeded)
	}
	return fmt.Errorf("%w: the process that runs them closed the connection", errUnavailable)
}

// attach sends the attachRequest and waits for its answer: attachConfirmTimeout for the
// confirmation, and then until ctx ends. It returns the error of the answer.
func (w *sharedWire) attach(ctx context.Context, line []byte) error {
	if err := w.conn.SetDeadline(time.Now().Add(attachConfirmTimeout)); err != nil {
		return err
	}
	if _, err := w.conn.Write(line); err != nil {
		return connectionLost(err)
	}
	if _, err := w.in.ReadLine(); err != nil { // methodWaiting
		return connectionLost(err)
	}
	if err := w.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	if ctx.Err() != nil { // its deadline was replaced
		return ctx.Err()
	}
	answer, err := w.in.ReadLine()
	if err != nil {
		return connectionLost(err)
	}
	m, err := jsonrpc.Split(answer)
	switch {
	case err != nil:
		return connectionLost(err)
	case m.Error != nil:
		return sharedError(jsonrpc.MemberOf(m.Error, "data"))
	}
	if err := json.Unmarshal(m.Result, &w.result); err != nil {
		return err
	}
	w.description.pid, w.description.sandbox = w.result.PID, w.result.Sandbox
	w.ids.blocks, w.ids.arrived = w.result.Blocks, make(chan struct{}, 1)
	w.ids.request = func() { w.send(append(jsonrpc.AppendNotification(nil, methodIDs, nil), '\n')) } //nolint:errcheck // the connection is ending
	return nil
}

// sharedError returns the error in the parameters of methodEnded, or in the data of an
// error response.
func sharedError(params json.RawMessage) error {
	var e struct {
		Code    toolerr.Code `json:"code"`
		Message string       `json:"message"`
	}
	if json.Unmarshal(params, &e) != nil || e.Message == "" {
		return toolerr.New(toolerr.ServerOffline, "the server ended")
	}
	return toolerr.New(e.Code, "%s", e.Message)
}

// run handles messages until the process ends or c is dead, and returns why.
func (w *sharedWire) run(c *conn) error {
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			line, err := w.in.ReadLine()
			switch {
			case errors.Is(err, jsonrpc.ErrTooLong):
				c.failTooLong(err)
			case err != nil:
				return
			case isControl(line):
				w.handleControl(c, line)
			case len(bytes.TrimSpace(line)) > 0:
				c.handleLine(line)
			}
		}
	}()
	select {
	case <-read:
	case err := <-w.givenUp:
		c.fail(err)
	case <-c.dead:
	}
	w.writer.close()
	w.conn.Close() //nolint:errcheck // all is said
	<-read
	w.writer.awaitIdle()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return w.ended
	}
	return toolerr.New(toolerr.ServerOffline, "the process that runs the shared servers ended; whether the call was executed is unknown")
}

// controlPrefix begins every message of SharedServers itself.
const controlPrefix = `{"jsonrpc":"2.0","method":"toolroom/`

// isControl reports whether a line was sent by SharedServers, which forwards no line
// of a server with such a method.
func isControl(line []byte) bool { return bytes.HasPrefix(line, []byte(controlPrefix)) }

// handleControl handles a message of SharedServers itself. It ignores unknown and
// malformed ones.
func (w *sharedWire) handleControl(c *conn, line []byte) {
	m, err := jsonrpc.Split(line)
	if err != nil {
		return
	}
	text := func() (s string) {
		json.Unmarshal(jsonrpc.MemberOf(m.Params, "text"), &s) //nolint:errcheck // then it is empty
		return s
	}
	switch m.Method {
	case methodTooLong:
		c.deliver(jsonrpc.MemberOf(m.Params, "id"), answer{err: c.cfg.tooLong()})
	case methodIDs:
		if block, err := strconv.ParseUint(string(jsonrpc.MemberOf(m.Params, "block")), 10, 64); err == nil {
			w.ids.add(block)
		}
	case methodMoved:
		w.stale.Store(true)
	case methodRoots:
		select {
		case w.rootsSeen <- string(jsonrpc.MemberOf(m.Params, "move")) == "true":
		default:
		}
	case methodStderr:
		stderr := w.cfg.redact(text())
		w.mu.Lock()
		w.description.stderr = stderr
		w.mu.Unlock()
	case methodRefused:
		refused := text()
		w.mu.Lock()
		w.description.refused = append(w.description.refused, refused)
		w.mu.Unlock()
		if w.cfg.Share.OnRefused != nil {
			w.cfg.Share.OnRefused(refused)
		}
	case methodEnded:
		w.mu.Lock()
		w.ended = sharedError(m.Params)
		w.mu.Unlock()
	}
}

// rootsAckTimeout is the longest time to wait for the answer to methodRoots.
const rootsAckTimeout = 2 * time.Second

// sendRoots sends this host's roots to SharedServers and waits, at most rootsAckTimeout, for the
// answer. If the process serves other hosts with other roots, the connection becomes
// stale.
func (w *sharedWire) sendRoots(roots []string) {
	w.mu.Lock()
	same := slices.Equal(w.roots, roots)
	w.roots = roots
	w.mu.Unlock()
	if same {
		return
	}
	params, err := jsonrpc.Marshal(map[string]any{"roots": append([]string{}, roots...)})
	if err != nil {
		return
	}
	if w.send(append(jsonrpc.AppendNotification(nil, methodRoots, params), '\n')) != nil {
		return
	}
	late := time.NewTimer(rootsAckTimeout)
	defer late.Stop()
	select {
	case move := <-w.rootsSeen:
		if move {
			w.stale.Store(true)
		}
	case <-late.C:
		w.stale.Store(true)
	}
}

// describe returns the known properties of the process.
func (w *sharedWire) describe() wireDescription {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.description
	d.refused = slices.Clone(d.refused)
	return d
}
