// Package upstream runs one MCP server behind the host: a program on its standard
// input and output, a server over HTTP (streamable HTTP or HTTP+SSE), or a function in
// this process. It starts a program when it is first needed, opens the session in the
// era that the server speaks, lists its tools, forwards calls, restarts it after its
// death, and ends it with its whole process tree.
//
// Messages are forwarded as bytes: only their top-level members are parsed, and a
// request gets an id of this connection. A server that crashes, hangs, floods, stops
// reading or writes noise affects only its own calls.
//
// Sources: the MCP specification, "Lifecycle" and "Transports" (shutdown of a program:
// close stdin, SIGTERM, SIGKILL), versions 2025-11-25 and 2026-07-28.
package upstream

import (
	"context"
	"crypto/rand"
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

// Era says which protocol era a server is opened with.
type Era string

// The eras. With Auto, the modern one is tried first, for ProbeTimeout.
const (
	Auto   Era = "auto"
	Legacy Era = "legacy"
	Modern Era = "modern"
)

// Config configures one server. Zero durations and sizes mean the defaults.
type Config struct {
	Name    string
	Command []string // absolute path of the program, and arguments; no shell
	Env     []string // the whole environment, NAME=value
	Dir     string   // working directory; "": the host's
	Era     Era      // "": Auto
	Version string   // of the host, sent to the server

	// Instead of Command: a server at an http or https address. With Transport "", a
	// server that accepts no POST there is tried over HTTP+SSE.
	URL          string
	Transport    Transport
	Headers      map[string]secret.Text
	Token        secret.Text // sent as Bearer; takes precedence over an Authorization in Headers
	AllowPrivate bool        // a public name may lead to a private address
	Auth         Authorizer  // supplies access tokens; nil: only Token and Headers

	// AuthFor returns the credentials of a caller, and a key that is the same for all
	// callers with these credentials. Each key has its own run of the server. With the
	// key "" the caller uses the common run, which has Auth. An error fails the caller's
	// requests. nil: all callers use Auth.
	AuthFor func(call.Caller) (key string, auth Authorizer, err error)

	// HeadersHelper is a program that prints further headers as a JSON object. They
	// take precedence over Headers. Without a Command it is not used.
	HeadersHelper OneShot

	// Serve, instead of Command, is a server in this program: it reads one message a
	// line from in and writes its own to out, until in ends.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error

	// Secrets are values given to the server that are redacted in its standard error
	// and its refusals. The values of Headers, Token and URL are always redacted.
	Secrets []secret.Text

	// Trusted are files that must be unchanged since the user trusted them, at each
	// start.
	Trusted []trust.File

	Disabled bool   // listed but never started
	Refused  string // why it is never started although it is enabled; "": it may be started

	// Host is the id of this host, sent to servers over HTTP so that a host recognizes
	// itself; "": none.
	Host string

	Scope Scope // "": Shared

	// Confine starts the program in a sandbox; nil: it has the user's rights.
	Confine func(ConfinedProgram) (ConfinedProcess, error)

	// Share lets other hosts of the user use the server's process, too; nil: this host
	// has its own. It applies to a Command with Scope Shared.
	Share *Share

	// KillsOwnTree says that the server ends its own children when its input ends, so
	// that it needs no guard.
	KillsOwnTree bool

	// Roots returns the answer to the server's roots/list as file URIs; nil: the host
	// declares no roots.
	Roots func() []string

	StartTimeout time.Duration // from the start to the end of handshake and listing; 10 s
	ProbeTimeout time.Duration // for the modern opening with Auto; 1 s, for a URL 3 s
	WriteTimeout time.Duration // in which a server must read its input; 10 s
	QuietTime    time.Duration // silence while calls wait, before a ping and again before it is given up; 15 s
	RetryEvery   time.Duration // interval of tries for a server that is offline; 60 s
	HealthEvery  time.Duration // interval of health checks of a silent server; 60 s
	CloseGrace   time.Duration // from closing stdin to SIGTERM; 2 s
	TermGrace    time.Duration // from SIGTERM to SIGKILL; 3 s
	MaxLine      int           // of one message in bytes; 64 MiB

	onNotification func(method string, params json.RawMessage, first *call.Owner) // see OnNotification
	afterHandshake func(*conn)                                                    // called after a handshake
	owners         *call.Owners                                                   // of the requests
	instance       string                                                         // see attachRequest

	marks *[]string // see Spawner.SetMarks; nil: those of the Spawner

	runOnce      func(context.Context, OneShot) ([]byte, string, error)
	helperValues *helperValues
}

// Transport is the HTTP transport of a server.
type Transport string

// The transports. SSE is HTTP+SSE of version 2024-11-05, which is deprecated.
const (
	StreamableHTTP Transport = "streamable-http"
	SSE            Transport = "sse"
)

// Validate returns an error that names the wrong field.
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

// validateURL returns an error for a wrong setting of a server over HTTP.
func (c Config) validateURL() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil: // its text may contain credentials
		return fmt.Errorf("server %s: url is malformed", c.Name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("server %s: url %s must begin with http:// or https://", c.Name, secret.RedactURL(c.URL))
	case len(c.Command) > 0:
		return fmt.Errorf("server %s: it has a command and a url; choose one", c.Name)
	case c.Transport != "" && c.Transport != StreamableHTTP && c.Transport != SSE:
		return fmt.Errorf("server %s: transport %q is not one of streamable-http, sse", c.Name, c.Transport)
	}
	return c.validateRest()
}

// validateRest returns an error for an unknown scope or era; "" means the default.
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

// withDefaults returns the settings with defaults for those that are empty or not
// positive.
func (c Config) withDefaults() Config {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&c.StartTimeout, 10*time.Second)
	probe := time.Second
	if c.URL != "" { // a web server answers unknown requests
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

// A Server is one upstream. It is safe for concurrent use. It must be closed before
// the Spawner.
type Server struct {
	cfg     Config
	spawner *Spawner

	ctx  context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup // waits for the server's goroutines

	mu         sync.Mutex
	closed     bool
	conn       *conn         // the current connection; may be dead
	starting   *startAttempt // nil unless a start is running
	era        Era           // found by the first handshake
	transport  Transport     // found by the first handshake
	fails      int           // failed starts, and deaths soon after a start, in succession
	starts     int
	nextStart  time.Time   // no start before this time
	retry      *time.Timer // starts it again
	last       *Failure
	unreported bool            // onFailure is to be called for last
	refused    error           // why it is not started again before Reconnect: it leads back to this host
	onChange   func()          // called after the tools may have changed
	onFailure  func(string)    // see OnFailure
	subscribed map[string]bool // URIs of subscribed resources
	level      string          // minimum level of log messages; "": the server's default

	latency atomic.Int64 // time of the last answered call or ping, in nanoseconds

	instances instances // with PerSession or AuthFor
}

// New returns a server that has not been started, or the error of cfg.Validate.
func New(cfg Config, spawner *Spawner) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg.withDefaults(), spawner: spawner, transport: cfg.Transport}
	s.cfg.afterHandshake, s.cfg.owners, s.cfg.instance = s.restoreSubscriptions, &call.Owners{}, rand.Text()
	if spawner != nil {
		s.cfg.runOnce, s.cfg.helperValues = spawner.RunOnce, &helperValues{}
	}
	if cfg.Refused != "" {
		s.keepOffline(toolerr.New(toolerr.ServerOffline, "%s", cfg.Refused))
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Name returns the configured name.
func (s *Server) Name() string { return s.cfg.Name }

// OnChange sets a function that is called in a goroutine when the list of tools may
// have changed. It must be set before the first use.
func (s *Server) OnChange(f func()) { s.onChange = f }

// OnFailure sets a function that gets the reason when the server does not start, or ends
// although it is needed. Of several failures in succession it gets only the first. It is
// called in a goroutine, and must be set before the first use.
func (s *Server) OnFailure(f func(reason string)) { s.onFailure = f }

// Tools returns the server's definitions as it sent them. It starts the server if
// necessary, and waits for it until ctx ends. The definitions must not be changed.
func (s *Server) Tools(ctx context.Context) ([]json.RawMessage, error) {
	c, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	return c.listedTools(), nil
}

// Call makes a call of one of the server's tools. It starts the server if necessary. If
// the server dies during the call, the call fails with SERVER_OFFLINE and is not sent
// again.
func (s *Server) Call(ctx context.Context, req *call.Request) (*call.Result, error) {
	one, leave, err := s.instanceOf(req.Caller)
	if err != nil {
		return nil, s.wrapCallError(ctx, req, call.PhaseConnect, err)
	}
	if one != s {
		defer leave()
		res, err := one.Call(ctx, req)
		s.latency.Store(one.latency.Load())
		return res, err
	}
	for attempt := 0; ; attempt++ {
		c, err := s.connection(ctx)
		if err != nil {
			return nil, s.wrapCallError(ctx, req, call.PhaseConnect, err)
		}
		begin := time.Now()
		a, err := c.call(ctx, req)
		if errors.Is(err, errNotSent) && attempt < 2 {
			select { // the server had died before: nothing was lost
			case <-c.dead:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err != nil {
			return nil, s.wrapCallError(ctx, req, call.PhaseExecute, err)
		}
		s.latency.Store(int64(time.Since(begin)))
		s.recordSuccess(c)
		return &call.Result{Raw: a.result, Names: a.names}, nil
	}
}

// wrapCallError does the same as wrapLostError for a tool call.
func (s *Server) wrapCallError(ctx context.Context, req *call.Request, phase string, err error) error {
	return s.wrapLostError(ctx, req.Tool.Name, phase, err)
}

// wrapLostError returns a *call.ExecutionError for a call whose connection was lost. It
// returns the server's own error, and that of ctx, unchanged.
func (s *Server) wrapLostError(ctx context.Context, method, phase string, err error) error {
	if errors.Is(err, errNotSent) {
		phase = call.PhaseConnect
	}
	var answered *call.MCPError
	if errors.As(err, &answered) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return &call.ExecutionError{
		Tool: method, Phase: phase, Cause: err,
		Message: fmt.Sprintf("server %[2]s could not execute %[1]s", method, s.cfg.Name),
	}
}

// Ping sends a request that a living server answers, and returns the time to the answer. It
// starts the server if necessary. It returns SERVER_OFFLINE if there is no answer within
// StartTimeout.
func (s *Server) Ping(ctx context.Context) (time.Duration, error) {
	c, err := s.connection(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	begin := time.Now()
	var refused *call.MCPError
	if err = c.ping(ctx); errors.As(err, &refused) { // an error answer is a sign of life, too
		err = nil
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = toolerr.New(toolerr.ServerOffline, "it did not answer a ping within %v", s.cfg.StartTimeout)
	}
	took := time.Since(begin)
	if err == nil {
		s.latency.Store(int64(took))
	}
	return took, err
}

// RootsChanged notifies a running server, and the runs of single callers, that
// Config.Roots returns other roots now.
func (s *Server) RootsChanged() {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil && s.cfg.Roots != nil {
		c.rootsChanged()
	}
	for _, one := range s.instances.servers() {
		one.RootsChanged()
	}
}

// rootsChanged notifies the server that the host has other roots.
func (c *conn) rootsChanged() {
	if shared, ok := c.out.(*sharedWire); ok {
		shared.sendRoots(c.cfg.Roots())
	} else if c.era == Legacy {
		c.send(append(jsonrpc.AppendNotification(nil, "notifications/roots/list_changed", nil), '\n'))
	}
}

// Close ends the server's process and waits until its process group has ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	if s.retry != nil {
		s.retry.Stop()
	}
	c := s.conn
	s.mu.Unlock()
	s.end()
	s.endInstances()
	if c != nil {
		c.fail(errClosed)
		c.closeUnused()
		<-c.ended
	}
	s.work.Wait()
	if s.cfg.Auth != nil {
		s.cfg.Auth.Close()
	}
}

// errClosed is the error of calls after Close.
var errClosed = toolerr.New(toolerr.ServerOffline, "the host is shutting down")
