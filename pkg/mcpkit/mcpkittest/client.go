package mcpkittest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Era selects the protocol versions that a client speaks.
type Era int

// The eras. A Raw client adds nothing to the messages that the test sends.
const (
	Legacy Era = iota // initialize, then requests
	Modern            // no handshake; every request carries _meta
	Raw
)

// Options configures StartWith. The zero value starts a legacy client without
// arguments.
type Options struct {
	Args []string
	Dir  string   // working directory; "": the test's
	Env  []string // whole environment; nil: the test's
	Era  Era
	// Roots are the directories that a legacy client offers as roots; nil:
	// none.
	Roots []string
	// Capabilities are further capabilities that a legacy client declares.
	Capabilities map[string]any
	// Handle answers the server's requests other than roots/list and ping; nil
	// refuses them.
	Handle func(method string, params json.RawMessage) (result any, err error)
	// Lenient allows lines on standard output that are not messages; otherwise
	// each fails the test at its end.
	Lenient bool
}

// Client is a raw client of a server that runs as a child process. Its methods
// are safe for concurrent use; methods that wait must run in the test's
// goroutine, since a failed wait ends the test.
type Client struct {
	t    testing.TB
	opts Options
	cmd  *exec.Cmd

	sending sync.Mutex // held while writing to in
	in      io.WriteCloser
	out     io.Closer

	mu            sync.Mutex
	lastID        int                 // last id that Go used
	untaken       map[string][]Answer // answers that Answer has not taken, by id
	notifications []Notification
	badOutput     []string      // faults of standard output
	changed       chan struct{} // closed and replaced when something arrives
	ended         bool          // standard output has ended
	stderr        stderrBuffer
	exited        chan struct{} // closed when the server has exited
	exit          int           // exit status, once exited is closed
}

// Answer is a response as received. Exactly one of Result and Error is nil.
type Answer struct {
	ID     string // as on the wire: 1, "a", null
	Result json.RawMessage
	Error  *RPCError
	Line   []byte
}

// RPCError is the error object of a JSON-RPC response.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// Notification is a notification from the server.
type Notification struct {
	Method string
	Params json.RawMessage
	After  int // number of answers received before it
}

// Start starts a server with the default options, which initialize it as a
// legacy client. The server is closed when the test ends.
func Start(t testing.TB, bin string, args ...string) *Client {
	t.Helper()
	return StartWith(t, bin, Options{Args: args})
}

// StartWith starts a server, and initializes it if opts.Era is Legacy. The
// server is closed when the test ends.
func StartWith(t testing.TB, bin string, opts Options) *Client {
	t.Helper()
	c := &Client{t: t, opts: opts, untaken: map[string][]Answer{}, changed: make(chan struct{}), exited: make(chan struct{})}
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

// initialize does the handshake of a legacy client.
func (c *Client) initialize() {
	c.t.Helper()
	capabilities := map[string]any{}
	maps.Copy(capabilities, c.opts.Capabilities)
	if c.opts.Roots != nil {
		capabilities["roots"] = map[string]any{"listChanged": true}
	}
	id := `"initialize"`
	c.Send(encodeMessage(id, "initialize", map[string]any{
		"protocolVersion": "2025-11-25",
		"capabilities":    capabilities,
		"clientInfo":      map[string]any{"name": "mcpkittest", "version": "1"},
	}))
	if answer := c.Answer(id); answer.Error != nil {
		c.t.Fatalf("initialize: %v", answer.Error)
	}
	c.Notify("notifications/initialized", nil)
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

// Close closes the server's input, waits for the server to exit and returns its
// exit status.
func (c *Client) Close() int {
	c.t.Helper()
	c.CloseInput()
	return c.Wait()
}

// cleanup closes the server's input and waits for its exit; after 10 s it kills the
// server. Unless Options.Lenient is set, it fails the test for each line of output that
// was not a message.
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
	for _, fault := range c.badOutput {
		if !c.opts.Lenient {
			c.t.Error(fault)
		}
	}
}
