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

// Era selects the protocol version that a client speaks.
type Era int

// The eras. A Raw client adds nothing to the messages that the test sends.
const (
	Legacy Era = iota // initialize, then requests
	Modern            // no handshake; every request carries _meta
	Raw
)

// Patience bounds every wait of a test. It is long because only failures reach
// it: a single processor may test several packages and do other work as well.
const Patience = 3 * time.Minute

// Options configures StartWith.
type Options struct {
	Args []string
	Dir  string   // working directory; "": the test's
	Env  []string // whole environment; nil: the test's
	Era  Era
	// Roots are the directories that a legacy client offers; nil: none.
	Roots []string
	// Capabilities are further capabilities that a legacy client declares.
	Capabilities map[string]any
	// Handle answers the server's requests other than roots/list and ping; nil
	// refuses them.
	Handle func(method string, params json.RawMessage) (result any, err error)
	// Lenient allows output on standard output that is not a message; otherwise
	// it fails the test at its end.
	Lenient bool
}

// Client is a raw client of a server that runs as a child process. Its methods
// are safe for concurrent use; methods that wait must run in the test's
// goroutine, since a failed wait ends the test.
type Client struct {
	t    testing.TB
	opts Options
	cmd  *exec.Cmd

	sending sync.Mutex
	in      io.WriteCloser
	out     io.Closer

	mu     sync.Mutex
	last   int                 // the last id that Go used
	got    map[string][]Answer // answers not yet taken, by id
	notes  []Notification
	faults []string
	change chan struct{} // closed and replaced when something arrives
	ended  bool          // standard output has ended
	stderr safeBuffer
	exited chan struct{}
	exit   int
}

// Answer is a response as received. Exactly one of Result and Error is nil.
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

// Notification is a notification of the server's.
type Notification struct {
	Method string
	Params json.RawMessage
	After  int // number of answers before it
}

// Start starts a server with the default options, which initialize it as a
// legacy client. The server is closed when the test ends.
func Start(t testing.TB, bin string, args ...string) *Client {
	t.Helper()
	return StartWith(t, bin, Options{Args: args})
}

// StartWith starts a server, and initializes it if opts.Era is Legacy.
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

// message encodes a message: a request, or a notification if id is "".
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

// Send writes one line unchanged and adds the newline.
func (c *Client) Send(line []byte) {
	c.t.Helper()
	c.SendRaw(append(bytes.Clone(line), '\n'))
}

// SendRaw writes bytes unchanged. If the server has exited, it only logs: the
// missing answers will fail the test.
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

// Go sends a request with the next id and returns the id, for Answer.
func (c *Client) Go(method string, params any) (id string) {
	c.t.Helper()
	c.mu.Lock()
	c.last++
	id = strconv.Itoa(c.last)
	c.mu.Unlock()
	c.Send(message(id, method, c.withMeta(params)))
	return id
}

// withMeta adds the _meta that a modern client sends with each request.
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

// Answer waits for the answer to id, given as on the wire, and takes it. It
// fails the test if the server ends without it.
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

// Until waits until done returns true; it is called with the client locked
// whenever a message arrives.
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

// Notifications returns the received notifications of a method, in order; ""
// means all methods.
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

// Untaken returns the answers received that no call of Answer has taken.
func (c *Client) Untaken() []Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Answer
	for _, answers := range c.got {
		list = append(list, answers...)
	}
	return list
}

// PID returns the server's process id.
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

// Wait waits for the server to exit and returns its status, or -1 if a signal
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

// Close closes the server's input, waits for the server to exit and returns its
// status.
func (c *Client) Close() int {
	c.t.Helper()
	c.CloseInput()
	return c.Wait()
}

// cleanup ends the server, and reports output on standard output that was not a
// message.
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
