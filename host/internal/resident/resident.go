// Package resident runs one process per user that starts the programs of MCP servers
// for all hosts of the user, so that equal servers run once (upstream.SharedServers).
//
// The first host that needs a shared server starts the process (Client.Dial). It ends
// some minutes after the last host. Its socket is in the directory shared of the state
// directory, with mode 0600, and serves only the same user. The name of the socket
// depends on the program file, so a newer version of the host uses a process of its
// own. It tells the process of the old version, which then ends with its last host.
//
// The first line of a connection is a JSON-RPC request of one of these methods:
//
//	toolroom/attach   see upstream.MethodAttach; the connection is then the server's
//	toolroom/resident {} → Status
//	toolroom/stop     {} → Status; the process then ends its servers, closes the connection and exits
//	toolroom/drain    {"program":PATH} → Status; a process of this program then exits when it has no hosts
package resident

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/confine"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// The methods of the socket besides upstream.MethodAttach.
const (
	methodStatus = "toolroom/resident"
	methodStop   = "toolroom/stop"
	methodDrain  = "toolroom/drain"
)

// DefaultIdle is the time after which a server without hosts ends, and then the
// process without servers.
const DefaultIdle = 3 * time.Minute

// attachTimeout is the longest time between a connection and its first line.
const attachTimeout = 10 * time.Second

// Config configures Run.
type Config struct {
	State   string        // the state directory
	Program string        // the program file of the host
	Version string        // of the host
	Idle    time.Duration // see DefaultIdle
	Guard   []string      // see upstream.SharedConfig
	// Stay makes Run wait until no other process serves the same socket, and then serve
	// also without hosts.
	Stay bool
	// Ready is called once the socket accepts connections.
	Ready func()
}

// Status describes the running process and its servers.
type Status struct {
	PID     int            `json:"pid"`
	Version string         `json:"version"`
	Since   time.Time      `json:"since"`
	Hosts   []int          `json:"hosts"` // process ids of the hosts, sorted
	Servers []ServerStatus `json:"servers"`
}

// ServerStatus describes a running shared server.
type ServerStatus struct {
	upstream.SharedStatus
	Memory int64   `json:"memory,omitempty"` // resident set of its process in bytes; 0: unknown
	CPU    float64 `json:"cpu,omitempty"`    // seconds of processor time of its process
}

// resident holds the state of the process that runs the shared servers.
type resident struct {
	cfg     Config
	shared  *upstream.SharedServers
	since   time.Time          // the start of the process
	stop    context.CancelFunc // ends Run
	work    sync.WaitGroup     // running connections
	changed chan struct{}      // capacity 1: a connection has ended, or draining was set
	drains  atomic.Bool        // the process ends with its last host

	mu       sync.Mutex
	stoppers []net.Conn // connections that have asked for the end
}

// Run serves hosts until ctx ends, a client asks for the end, or no host was connected for
// Idle. Without Stay, the caller makes sure that no other process serves the same socket.
// It returns nil then, and an error if it cannot listen at the socket.
func Run(ctx context.Context, cfg Config) error {
	dir, name, err := socketOf(cfg.State, cfg.Program)
	if err != nil {
		return err
	}
	unlock := func() {}
	if cfg.Stay {
		unlock, err = awaitTurn(ctx, dir, name)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil
		case err != nil:
			return err
		}
	}
	listener, err := control.ListenAt(dir, name)
	socket := lstat(filepath.Join(dir, name))
	unlock()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	confiner := confine.New(cfg.State)
	r := &resident{cfg: cfg, since: time.Now(), stop: stop, changed: make(chan struct{}, 1)}
	defer r.closeStoppers() // when the servers have ended and no file of the state directory is written any more
	r.shared = upstream.NewSharedServers(upstream.SharedConfig{Guard: cfg.Guard, Idle: cfg.Idle, Confine: confineWith(ctx, confiner)})
	defer r.shared.Close()
	r.work.Go(func() { r.accept(ctx, listener) })
	r.work.Go(func() { replaceOlder(ctx, dir, name, cfg.Program) })
	if cfg.Ready != nil {
		cfg.Ready()
	}
	r.waitIdle(ctx)
	r.removeSocket(dir, name, socket, listener)
	stop()
	r.shared.Close()
	r.work.Wait()
	return nil
}

// closeStoppers closes the connections that wait for the end of the process.
func (r *resident) closeStoppers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.stoppers {
		conn.Close() //nolint:errcheck // that is the message
	}
}

// waitIdle returns when ctx ends or, without cfg.Stay, when no host was connected for
// cfg.Idle; if the process drains, as soon as no host is connected.
func (r *resident) waitIdle(ctx context.Context) {
	idle := time.NewTimer(r.cfg.Idle)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			if r.drains.Load() && len(r.shared.Hosts()) == 0 {
				return
			}
			idle.Reset(r.cfg.Idle)
		case <-idle.C:
			if len(r.shared.Hosts()) == 0 && !r.cfg.Stay {
				return
			}
			idle.Reset(r.cfg.Idle)
		}
	}
}

// lstat returns the description of a file; nil if there is none.
func lstat(path string) os.FileInfo {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	return info
}

// removeSocket removes the socket, which was socket at the start, unless another process has
// replaced it: the directory may have been removed, or a client may have found the process
// too slow. It excludes clients that start a process meanwhile.
func (r *resident) removeSocket(dir, name string, socket os.FileInfo, listener *net.UnixListener) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	unlock, err := lock(ctx, dir, name)
	if err == nil {
		defer unlock()
	}
	// The listener is closed after the comparison: until then no other file gets its inode.
	if path := filepath.Join(dir, name); os.SameFile(socket, lstat(path)) {
		os.Remove(path) //nolint:errcheck // the next process replaces it
	}
	listener.Close() //nolint:errcheck // nobody comes any more
}

// accept serves connections of hosts until ctx or the listener ends. Those of other users
// are closed.
func (r *resident) accept(ctx context.Context, listener *net.UnixListener) {
	for ctx.Err() == nil {
		conn, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example no free descriptors, of which some become free
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if !control.IsOwner(conn) {
			conn.Close() //nolint:errcheck // nothing was said
			continue
		}
		r.work.Go(func() {
			if !r.handleConnection(conn) {
				return
			}
			select {
			case r.changed <- struct{}{}:
			default:
			}
		})
	}
}

// handleConnection handles the first line of a connection. It reports whether the process
// may have fewer reasons to run now: a host has ended, or the process drains.
func (r *resident) handleConnection(conn *net.UnixConn) (changed bool) {
	stops := false
	defer func() {
		if !stops {
			conn.Close() //nolint:errcheck // all is said
		}
	}()
	if conn.SetReadDeadline(time.Now().Add(attachTimeout)) != nil {
		return false
	}
	in := jsonrpc.NewReader(conn, 0)
	line, err := in.ReadLine()
	if err != nil {
		return false
	}
	m, err := jsonrpc.Split(line)
	if err != nil || m.Kind != jsonrpc.Request || conn.SetDeadline(time.Time{}) != nil {
		return false
	}
	switch m.Method {
	case upstream.MethodAttach:
		r.shared.Serve(conn, m, in)
		return true
	case methodStatus, methodStop, methodDrain:
		if m.Method == methodDrain && string(jsonrpc.MemberOf(m.Params, "program")) == string(jsonrpc.AppendString(nil, r.cfg.Program)) {
			r.drains.Store(true) // the end of this connection wakes waitIdle
		}
		raw, err := jsonrpc.Marshal(r.status())
		if err == nil {
			conn.Write(append(jsonrpc.AppendResult(nil, m.ID, raw), '\n')) //nolint:errcheck // the client is gone
		}
		if m.Method == methodStop {
			r.mu.Lock()
			r.stoppers, stops = append(r.stoppers, conn), true
			r.mu.Unlock()
			r.stop()
		}
	default:
		conn.Write(append(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, fmt.Sprintf("unknown method %q", m.Method)), '\n')) //nolint:errcheck // the client is gone
	}
	return m.Method == methodDrain
}

// status returns the state of the process and of the shared servers.
func (r *resident) status() Status {
	s := Status{PID: os.Getpid(), Version: r.cfg.Version, Since: r.since.UTC().Truncate(time.Millisecond), Hosts: r.shared.Hosts(), Servers: []ServerStatus{}}
	for _, one := range r.shared.Status() {
		memory, cpu := processUsage(one.PID)
		s.Servers = append(s.Servers, ServerStatus{one, memory, cpu})
	}
	return s
}

// ConfinedSettings is the value of upstream.Share.Confined.
type ConfinedSettings struct {
	Server     string           `json:"server"`
	Configured []string         `json:"configured"` // see confine.Program.Configured
	Settings   confine.Settings `json:"settings"`
}

// confineWith returns the function for upstream.SharedConfig.Confine. Programs that it
// starts end with life.
func confineWith(life context.Context, confiner *confine.Confiner) func(json.RawMessage, func(string)) (func(upstream.ConfinedProgram) (upstream.ConfinedProcess, error), error) {
	return func(raw json.RawMessage, onRefused func(string)) (func(upstream.ConfinedProgram) (upstream.ConfinedProcess, error), error) {
		var c ConfinedSettings
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, fmt.Errorf("settings of the sandbox: %w", err)
		}
		return func(p upstream.ConfinedProgram) (upstream.ConfinedProcess, error) {
			process, err := confiner.Start(life, confine.Program{
				Server: c.Server, Command: p.Command, Dir: p.Dir, Env: p.Env, Configured: c.Configured, Stdio: p.Stdio, Grace: p.Grace, OnRefused: onRefused,
			}, c.Settings)
			if err != nil {
				return nil, err
			}
			return process, nil
		}, nil
	}
}
