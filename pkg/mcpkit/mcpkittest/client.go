package mcpkittest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Era is which of the two protocols a client speaks.
type Era int

// The eras. Raw is a client that adds nothing of its own.
const (
	Legacy Era = iota // initialize, then requests
	Modern            // no handshake; every request carries _meta
	Raw
)

// Patience bounds every wait of a test. It is long, since it is only reached
// where something is wrong: one processor may have several packages to test
// and other work as well.
const Patience = 3 * time.Minute

// Options says how to start a server.
type Options struct {
	Args []string
	Dir  string   // working directory; "": the test's
	Env  []string // whole environment; nil: the test's
	Era  Era
	// Roots are the directories a legacy client offers. nil: it offers none.
	Roots []string
	// Capabilities are what else a legacy client says that it can do.
	Capabilities map[string]any
	// Handle answers the server's requests other than roots/list. nil: they
	// are refused.
	Handle func(method string, params json.RawMessage) (result any, err error)
	// Lenient lets standard output carry what is not a message. The test's
	// end reports it otherwise.
	Lenient bool
}

// Client is a raw client of a server that runs as a child process. Its
// methods may be called from several goroutines; a wait that fails ends the
// test, so those that wait belong into the test's goroutine.
type Client struct {
	t    testing.TB
	opts Options
	cmd  *exec.Cmd

	sending sync.Mutex
	in      io.WriteCloser
	out     io.Closer

	mu     sync.Mutex
	last   int                 // id of our own numbering
	got    map[string][]Answer // answers not yet taken, by id
	notes  []Notification
	faults []string
	change chan struct{} // closed and replaced when something arrives
	ended  bool          // standard output is at its end
	stderr safeBuffer
	exited chan struct{}
	exit   int
}

// Answer is a response as it came. One of Result and Error is nil.
type Answer struct {
	ID     string // as on the wire: 1, "a", null
	Result json.RawMessage
	Error  *RPCError
	Line   []byte
}

// RPCError is a JSON-RPC error.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// Notification is a message of the server's that asks no answer.
type Notification struct {
	Method string
	Params json.RawMessage
	After  int // how many answers came before it
}

// Start starts a server and, as legacy clients do, initializes it. The
// server is closed when the test ends.
func Start(t testing.TB, bin string, args ...string) *Client {
	t.Helper()
	return StartWith(t, bin, Options{Args: args})
}

// StartWith starts a server.
func StartWith(t testing.TB, bin string, opts Options) *Client {
	t.Helper()
	c := &Client{t: t, opts: opts, got: map[string][]Answer{}, change: make(chan struct{}), exited: make(chan struct{})}
	c.cmd = exec.Command(bin, opts.Args...)
	c.cmd.Dir, c.cmd.Env = opts.Dir, opts.Env
	c.cmd.Stderr = &c.stderr
	c.cmd.WaitDelay = 5 * time.Second
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatalf("starting %s: %v", bin, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("starting %s: %v", bin, err)
	}
	c.in = in
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", bin, err)
	}
	c.out = out
	go c.read(out)
	t.Cleanup(c.cleanup)
	if opts.Era == Legacy {
		c.initialize()
	}
	return c
}

func (c *Client) initialize() {
	c.t.Helper()
	capabilities := map[string]any{}
	maps.Copy(capabilities, c.opts.Capabilities)
	if c.opts.Roots != nil {
		capabilities["roots"] = map[string]any{"listChanged": true}
	}
	id := `"initialize"`
	c.Send(message(id, "initialize", map[string]any{
		"protocolVersion": "2025-11-25",
		"capabilities":    capabilities,
		"clientInfo":      map[string]any{"name": "mcpkittest", "version": "1"},
	}))
	if answer := c.Answer(id); answer.Error != nil {
		c.t.Fatalf("initialize: %v", answer.Error)
	}
	c.Notify("notifications/initialized", nil)
}

// message makes one message; a request where id is not "".
func message(id, method string, params any) []byte {
	m := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  any             `json:"params,omitempty"`
	}{"2.0", json.RawMessage(id), method, params}
	line, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("params of %s: %v", method, err))
	}
	return line
}

// Send writes one line as it is; the newline is added.
func (c *Client) Send(line []byte) {
	c.t.Helper()
	c.SendRaw(append(bytes.Clone(line), '\n'))
}

// SendRaw writes bytes as they are. A server that has gone is no failure
// here: the answers that are missing will be.
func (c *Client) SendRaw(data []byte) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if _, err := c.in.Write(data); err != nil {
		c.t.Logf("writing to the server: %v", err)
	}
}

// Notify sends a notification.
func (c *Client) Notify(method string, params any) {
	c.t.Helper()
	c.Send(message("", method, params))
}

// Go sends a request under the next number and returns its id for Answer.
func (c *Client) Go(method string, params any) (id string) {
	c.t.Helper()
	c.mu.Lock()
	c.last++
	id = strconv.Itoa(c.last)
	c.mu.Unlock()
	c.Send(message(id, method, c.withMeta(params)))
	return id
}

// withMeta adds what a modern client says with each request.
func (c *Client) withMeta(params any) any {
	if c.opts.Era != Modern {
		return params
	}
	raw, err := json.Marshal(params)
	if err != nil {
		c.t.Fatalf("params: %v", err)
	}
	object := map[string]json.RawMessage{}
	meta := map[string]any{}
	if params != nil && json.Unmarshal(raw, &object) != nil || json.Unmarshal(orNull(object["_meta"]), &meta) != nil {
		return params
	}
	if meta == nil {
		meta = map[string]any{}
	}
	meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
	meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
	meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "mcpkittest", "version": "1"}
	out := map[string]any{"_meta": meta}
	for name, value := range object {
		if name != "_meta" {
			out[name] = value
		}
	}
	return out
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// Request sends a request and waits for its answer.
func (c *Client) Request(method string, params any) Answer {
	c.t.Helper()
	return c.Answer(c.Go(method, params))
}

// Answer waits for the answer under an id as it stands on the wire, and takes
// it. It ends the test when the server ends without one.
func (c *Client) Answer(id string) Answer {
	c.t.Helper()
	var answer Answer
	c.Until("the answer to "+id, func() bool {
		list := c.got[id]
		if len(list) == 0 {
			return false
		}
		answer, c.got[id] = list[0], list[1:]
		return true
	})
	return answer
}

// Until waits for a condition on what has arrived. The condition is called
// with the client locked.
func (c *Client) Until(what string, done func() bool) {
	c.t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	for {
		c.mu.Lock()
		ok, ended, change := done(), c.ended, c.change
		c.mu.Unlock()
		if ok {
			return
		}
		if ended {
			c.t.Fatalf("the server ended without %s; its standard error:\n%s", what, c.stderr.String())
		}
		select {
		case <-change:
		case <-timer.C:
			c.t.Fatalf("no %s within %v; standard error:\n%s", what, Patience, c.stderr.String())
		}
	}
}

// Notifications returns those of a method, in the order they came; of all
// methods for "".
func (c *Client) Notifications(method string) []Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Notification
	for _, n := range c.notes {
		if method == "" || n.Method == method {
			list = append(list, n)
		}
	}
	return list
}

// Untaken returns the answers that came and were not asked for.
func (c *Client) Untaken() []Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Answer
	for _, answers := range c.got {
		list = append(list, answers...)
	}
	return list
}

// PID is the server's process id.
func (c *Client) PID() int { return c.cmd.Process.Pid }

// Stderr returns what the server has written to standard error so far.
func (c *Client) Stderr() string { return c.stderr.String() }

// CloseInput ends the server's standard input.
func (c *Client) CloseInput() {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.in.Close(); err != nil {
		c.t.Logf("closing the server's input: %v", err)
	}
}

// Wait waits for the server to exit and returns its status, -1 if a signal
// ended it.
func (c *Client) Wait() int {
	c.t.Helper()
	select {
	case <-c.exited:
	case <-time.After(Patience):
		c.t.Fatalf("the server did not exit within %v", Patience)
	}
	return c.exit
}

// Close ends the input and waits for the server to exit.
func (c *Client) Close() int {
	c.t.Helper()
	c.CloseInput()
	return c.Wait()
}

// cleanup ends the server however the test went, and reports what it wrote
// to standard output beside messages.
func (c *Client) cleanup() {
	c.sending.Lock()
	c.in.Close() // closed already: fine
	c.sending.Unlock()
	select {
	case <-c.exited:
	case <-time.After(10 * time.Second):
		if err := c.cmd.Process.Kill(); err != nil {
			c.t.Logf("killing the server: %v", err)
		}
		c.out.Close() // a child of the server's may hold the other end
		<-c.exited
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fault := range c.faults {
		if !c.opts.Lenient {
			c.t.Error(fault)
		}
	}
}
