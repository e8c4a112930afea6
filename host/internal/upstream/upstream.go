// Package upstream is one MCP server behind the host: a program on its standard
// input and output, an address (streamable HTTP, HTTP+SSE), or a function in this
// process. It starts a program when it is first needed, shakes hands in whichever
// era the server speaks, lists its tools, carries calls, notices its death and
// starts it again, and ends it with its whole tree of processes.
//
// The wire is spliced: of a message only the top-level members are
// looked at, a request gets an id of this connection's, and everything else
// stays the bytes it was. Nothing a server does (crash, hang, flood, stop
// reading, write noise) reaches beyond the calls it was given.
//
// Sources: the MCP specification, "Lifecycle" and "Transports" (how to shut a
// program down: close stdin, SIGTERM, SIGKILL), versions 2025-11-25 and
// 2026-07-28.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Era says which opening a server is given.
type Era string

// The eras. With Auto the modern one is tried first, for ProbeTimeout.
const (
	Auto   Era = "auto"
	Legacy Era = "legacy"
	Modern Era = "modern"
)

// Config is one server. Zero durations and sizes mean the defaults.
type Config struct {
	Name    string
	Command []string // the program, absolute, and its arguments; no shell
	Env     []string // the whole environment, NAME=value
	Dir     string   // working directory; "": the host's
	Era     Era      // "": Auto
	Version string   // of the host, told to the server

	// In place of Command: a server at an address, http or https. With
	// Transport "" a server that takes no POST there is tried over HTTP+SSE.
	URL          string
	Transport    Transport
	Headers      map[string]secret.Text
	Token        secret.Text // sent as Bearer; wins over an Authorization of Headers
	AllowPrivate bool        // whether a public name may lead to a private address
	Auth         Authorizer  // supplies access tokens; nil: Token and Headers alone

	// HeadersHelper is a program that prints more headers as a JSON object, with
	// precedence over Headers. Without Command there is none.
	HeadersHelper OneShot

	// Serve, in place of Command, is a server that is part of this program: it
	// reads messages from in, a line each, and writes its own to out, until in
	// ends.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	// Secrets are values that the server is given and that are hidden in what it
	// says of itself: on its standard error, or when it refuses. Those of
	// Headers, Token and URL are anyway.
	Secrets []secret.Text

	// Trusted are files that have to be as they were trusted at each start.
	Trusted []trust.File

	Disabled bool   // it is listed, and never started
	Refused  string // why it is never started, though it is wanted; "": it may be

	// Host is the id of this host, sent to servers over HTTP, so that a host
	// recognizes itself; "": none.
	Host string

	Scope Scope // "": Shared

	// KillsOwnTree says that the server ends its own children when its input
	// ends, so that no guard has to.
	KillsOwnTree bool

	// Roots answers the server's roots/list with file URIs; nil: the host
	// declares no roots.
	Roots func() []string

	StartTimeout time.Duration // from start to the end of the handshake and listing; 10 s
	ProbeTimeout time.Duration // for the modern opening with Auto; 1 s, of a URL 3 s
	WriteTimeout time.Duration // how long a server may leave its input unread; 10 s
	QuietTime    time.Duration // of silence while calls wait, before it is pinged, and again before it is given up; 15 s
	RetryEvery   time.Duration // how often a server that is offline is tried; 60 s
	HealthEvery  time.Duration // how often a server that says nothing is asked for a sign of life; 60 s
	CloseGrace   time.Duration // from closing stdin to SIGTERM; 2 s
	TermGrace    time.Duration // from SIGTERM to SIGKILL; 3 s
	MaxLine      int           // of one message in bytes; 64 MiB

	tell   func(method string, params json.RawMessage) // see OnNotification
	resume func(*conn)                                 // after a handshake

	runOnce      func(context.Context, OneShot) ([]byte, string, error)
	helperValues *helperValues
}

// Transport says how a server at an address is spoken to.
type Transport string

// The transports. SSE is the HTTP+SSE of version 2024-11-05, retired since.
const (
	StreamableHTTP Transport = "streamable-http"
	SSE            Transport = "sse"
)

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("server: name is empty")
	case c.Disabled:
		return nil
	case c.URL != "":
		return c.validateURL()
	case c.Serve != nil:
		return c.validateRest()
	case len(c.Command) == 0 || c.Command[0] == "":
		return fmt.Errorf("server %s: command is empty", c.Name)
	case !filepath.IsAbs(c.Command[0]):
		return fmt.Errorf("server %s: command %q is not an absolute path", c.Name, c.Command[0])
	}
	return c.validateRest()
}

func (c Config) validateURL() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil: // whose text may hold credentials
		return fmt.Errorf("server %s: url is malformed", c.Name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("server %s: url %s must begin with http:// or https://", c.Name, secret.URL(c.URL))
	case len(c.Command) > 0:
		return fmt.Errorf("server %s: it has a command and a url; choose one", c.Name)
	case c.Transport != "" && c.Transport != StreamableHTTP && c.Transport != SSE:
		return fmt.Errorf("server %s: transport %q is not one of streamable-http, sse", c.Name, c.Transport)
	}
	return c.validateRest()
}

func (c Config) validateRest() error {
	e := c.Era
	switch c.Scope {
	case "", Shared, PerSession, PerCall:
	default:
		return fmt.Errorf("server %s: scope %q is not one of shared, session, call", c.Name, c.Scope)
	}
	if e != "" && e != Auto && e != Legacy && e != Modern {
		return fmt.Errorf("server %s: era %q is not one of auto, legacy, modern", c.Name, e)
	}
	return nil
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&c.StartTimeout, 10*time.Second)
	probe := time.Second
	if c.URL != "" { // a web server answers what it does not know
		probe = 3 * time.Second
	}
	set(&c.ProbeTimeout, probe)
	set(&c.WriteTimeout, 10*time.Second)
	set(&c.QuietTime, 15*time.Second)
	set(&c.RetryEvery, time.Minute)
	set(&c.HealthEvery, time.Minute)
	set(&c.CloseGrace, 2*time.Second)
	set(&c.TermGrace, 3*time.Second)
	if c.Era == "" {
		c.Era = Auto
	}
	if c.Scope == "" {
		c.Scope = Shared
	}
	if c.MaxLine <= 0 {
		c.MaxLine = jsonrpc.MaxLine
	}
	return c
}

// A Server is one upstream. It is safe for concurrent use. Close it before
// the Spawner.
type Server struct {
	cfg     Config
	spawner *Spawner

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup // what the server's own goroutines do

	mu        sync.Mutex
	closed    bool
	conn      *conn     // the present connection; may be dead
	starting  *starting // nil unless a start is under way
	era       Era       // as found out by the first handshake
	transport Transport // likewise
	fails     int       // failed starts, and deaths soon after a start, in a row
	starts    int
	notUntil  time.Time   // no start before this
	retry     *time.Timer // starts it again
	last      *Failure
	refused   error           // why it is not started again until Reconnect; it leads back to this host
	onChange  func()          // called after the tools may have changed
	watched   map[string]bool // URIs of resources that are subscribed to
	level     string          // the least level of log messages; "": the server's choice

	took atomic.Int64 // by the last call or ping that was answered, in nanoseconds

	visits visits // with PerSession
}

// New returns a server that has not been started.
func New(cfg Config, spawner *Spawner) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg.withDefaults(), spawner: spawner, transport: cfg.Transport}
	s.cfg.resume = s.resume
	if spawner != nil {
		s.cfg.runOnce, s.cfg.helperValues = spawner.RunOnce, &helperValues{}
	}
	if cfg.Refused != "" {
		s.refuse(toolerr.New(toolerr.ServerOffline, "%s", cfg.Refused))
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Name returns the configured name.
func (s *Server) Name() string { return s.cfg.Name }

// OnChange sets what is called, in a goroutine of the server's, when its list
// of tools may have changed. Call it before first use.
func (s *Server) OnChange(f func()) { s.onChange = f }

// Tools returns the server's definitions as it sent them, starting it if need
// be.
func (s *Server) Tools(ctx context.Context) ([]json.RawMessage, error) {
	c, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	return c.listed(), nil
}

// Handle carries out a call of one of the server's tools, starting the server
// if need be. A server that dies during a call fails that call with
// SERVER_OFFLINE; it is not sent again.
func (s *Server) Handle(ctx context.Context, req *call.Request) (*call.Result, error) {
	if s.cfg.Scope != Shared {
		one, leave, err := s.of(req.Caller.ID)
		if err != nil {
			return nil, s.failed(ctx, req, call.PhaseConnect, err)
		}
		defer leave()
		res, err := one.Handle(ctx, req)
		s.took.Store(one.took.Load())
		return res, err
	}
	for attempt := 0; ; attempt++ {
		c, err := s.ready(ctx)
		if err != nil {
			return nil, s.failed(ctx, req, call.PhaseConnect, err)
		}
		begin := time.Now()
		a, err := c.call(ctx, req)
		if errors.Is(err, errNotSent) && attempt < 2 {
			select { // it had died before: nothing was lost
			case <-c.dead:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err != nil {
			return nil, s.failed(ctx, req, call.PhaseExecute, err)
		}
		s.took.Store(int64(time.Since(begin)))
		s.worked(c)
		return &call.Result{Raw: a.result, Names: a.names}, nil
	}
}

// failed wraps what keeps a call from being carried out, but for what the
// server itself answered and the end of the caller's context.
func (s *Server) failed(ctx context.Context, req *call.Request, phase string, err error) error {
	return s.lost(ctx, req.Tool.Name, phase, err)
}

func (s *Server) lost(ctx context.Context, what, phase string, err error) error {
	if errors.Is(err, errNotSent) {
		phase = call.PhaseConnect
	}
	var answered *call.MCPError
	if errors.As(err, &answered) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return &call.ExecutionError{
		Tool: what, Phase: phase, Cause: err,
		Message: fmt.Sprintf("server %[2]s could not execute %[1]s", what, s.cfg.Name),
	}
}

// Ping asks the server for a sign of life and returns how long it took.
func (s *Server) Ping(ctx context.Context) (time.Duration, error) {
	c, err := s.ready(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	begin := time.Now()
	var refused *call.MCPError
	if err = c.ping(ctx); errors.As(err, &refused) { // which is a sign of life, too
		err = nil
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = toolerr.New(toolerr.ServerOffline, "it did not answer a ping within %v", s.cfg.StartTimeout)
	}
	took := time.Since(begin)
	if err == nil {
		s.took.Store(int64(took))
	}
	return took, err
}

// RootsChanged tells a running server that Roots answers something else.
func (s *Server) RootsChanged() {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil && c.era == Legacy && s.cfg.Roots != nil {
		c.send(append(jsonrpc.AppendNotification(nil, "notifications/roots/list_changed", nil), '\n'))
	}
	for _, one := range s.visits.servers() {
		one.RootsChanged()
	}
}

// Close ends the server's process and waits until it and its group are gone.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	if s.retry != nil {
		s.retry.Stop()
	}
	c := s.conn
	s.mu.Unlock()
	s.end()
	s.endVisits()
	if c != nil {
		c.fail(errClosed)
		c.leave()
		<-c.gone
	}
	s.work.Wait()
}

var errClosed = toolerr.New(toolerr.ServerOffline, "the host is shutting down")
