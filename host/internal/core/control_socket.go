package core

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/telemetry/prometheus"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The methods of the control socket, see package control.
const (
	MethodHost      = "toolroom/host"      // {} → RunningHost
	MethodServers   = "toolroom/servers"   // {} → []upstream.Status
	MethodReconnect = "toolroom/reconnect" // {"server":NAME} → upstream.Status
	MethodStats     = "toolroom/stats"     // {} → Counts
)

// RunningHost describes a running host.
type RunningHost struct {
	PID        int       `json:"pid"`
	Since      time.Time `json:"since"`
	Version    string    `json:"version"`
	EntryPoint string    `json:"entry_point"`     // stdio, or the URL of serve
	Files      []string  `json:"files"`           // configuration files
	Stale      string    `json:"stale,omitempty"` // why the files are not in force as they are now
}

// HostStatus holds counters since the start of a host, and its current load.
type HostStatus struct {
	RunningHost
	Tools   []stats.Row        `json:"tools"`
	Loads   []limit.Load       `json:"loads"`
	Process prometheus.Process `json:"process"`
}

// callbackMeta is the member of _meta that tells a server that runs agents how they
// reach the host's tools and for whom:
//
// {"socket":PATH,"token":TOKEN,"lease":ID,"depth":N,"within":ID}
//
// lease names the agent that uses the token. depth is the number of agents' calls in
// which the call is nested, and within names the innermost of these agents, if any.
const callbackMeta = "io.github.toolroom-mcp/host"

// controlSocket is the host's control socket. The zero value has none.
type controlSocket struct {
	tokens  control.CallbackTokens
	server  *control.Server
	openErr error // why the socket could not be opened
}

// close closes the socket, if it is open.
func (p *controlSocket) close() {
	if p.server != nil {
		p.server.Close()
	}
}

// Listen opens the control socket, with which other programs of the user query this
// host and agents use its tools. entryPoint says how clients reach the host. Close closes
// the socket.
func (a *App) Listen(entryPoint string) error {
	running := func() RunningHost {
		r := RunningHost{
			PID: os.Getpid(), Since: a.startedAt.UTC().Truncate(time.Millisecond), Version: a.version,
			EntryPoint: entryPoint, Files: append([]string{}, a.Config.Files...),
		}
		if err := a.WhyStale(); err != nil {
			r.Stale = err.Error()
		}
		return r
	}
	server, err := control.Listen(control.Config{
		State: a.Config.State,
		Control: map[string]control.Method{
			MethodHost:      func(context.Context, json.RawMessage) (any, error) { return running(), nil },
			MethodServers:   func(ctx context.Context, _ json.RawMessage) (any, error) { return a.Statuses(ctx), nil },
			MethodReconnect: a.reconnect,
			MethodStats: func(context.Context, json.RawMessage) (any, error) {
				return HostStatus{running(), a.Stats(), a.loadByServer(), prometheus.CurrentProcess()}, nil
			},
		},
		Serve: func(ctx context.Context, as call.Caller, in io.Reader, out io.Writer) error {
			return a.Gateway.ServeAs(ctx, as, in, out, nil)
		},
	}, &a.controlSocket.tokens)
	if err != nil {
		a.controlSocket.openErr = err
		return err
	}
	a.controlSocket.server = server
	return nil
}

// Statuses returns the status of each server of this host, in the configured order,
// with the reason why its tools are not served, if so. Credentials in command lines are
// removed.
func (a *App) Statuses(ctx context.Context) []upstream.Status {
	all := []upstream.Status{}
	for _, s := range a.Servers() {
		status := Status(s)
		status.Withheld = a.WithheldReason(ctx, s)
		all = append(all, status)
	}
	return all
}

// Status returns the status of a server, without the credentials in its command line. The
// field Withheld is not set.
func Status(s *upstream.Server) upstream.Status {
	status := s.Status()
	status.Command, status.URL = s.ShownCommand(), s.Redacted(status.URL)
	status.SignIn = s.SignIn()
	return status
}

// reconnect handles MethodReconnect: it restarts the named server, pings it, and returns
// its status. It returns NOT_FOUND for an unknown server.
func (a *App) reconnect(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Server string `json:"server"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "params: %w", err)
	}
	for _, s := range a.Servers() {
		if s.Name() == p.Server {
			if err := s.Reconnect(ctx); err != nil {
				return nil, err
			}
			if _, err := s.Ping(ctx); err != nil {
				return nil, err
			}
			return Status(s), nil
		}
	}
	return nil, toolerr.New(toolerr.NotFound, "no server %q", p.Server)
}

// withCallback adds callbackMeta to a call that can start an agent; other calls stay
// unchanged. The token in it is valid until done is called with the result, or longer if
// the result says that the agent continues. It returns an error if the control socket
// could not be opened, since the agent would then work outside this host and its limits.
func (a *App) withCallback(ctx context.Context, req *call.Request) (with *call.Request, done func(*call.Result), err error) {
	nested := slices.Contains(a.currentPipeline().cfg.Limit.Nested, req.Tool.Server)
	switch {
	case nested && a.controlSocket.openErr != nil:
		return nil, nil, toolerr.New(toolerr.ExecutionError, "agents cannot reach this host's tools: %w", a.controlSocket.openErr)
	case !nested || a.controlSocket.server == nil:
		return req, func(*call.Result) {}, nil
	}
	token, err := a.controlSocket.tokens.Issue(ctx, req.Caller)
	if err != nil {
		return nil, nil, err
	}
	done = func(res *call.Result) { token.Revoke(agentContinues(res) && startsAgent(req)) }
	params, err := setMeta(req.Params, callbackMeta, fmt.Appendf(nil, `{"socket":%s,"token":%s,"lease":%s,"depth":%d,"within":%s}`,
		jsonrpc.AppendString(nil, a.controlSocket.server.Name()), jsonrpc.AppendString(nil, token.Token),
		jsonrpc.AppendString(nil, token.ID), req.Caller.Depth, jsonrpc.AppendString(nil, req.Caller.Agent)))
	if err != nil { // otherwise the caller could set the member itself
		token.Revoke(false)
		return nil, nil, toolerr.New(toolerr.InvalidParams, "params of tools/call: %w", err)
	}
	withToken := *req
	withToken.Params = params
	return &withToken, done, nil
}

// startsAgent reports whether a call can start an agent. A call that only waits for
// one needs no token.
func startsAgent(req *call.Request) bool {
	raw, err := req.Arguments()
	var args struct {
		Prompt string `json:"prompt"`
	}
	return err == nil && (json.Unmarshal(raw, &args) != nil || strings.TrimSpace(args.Prompt) != "")
}

// agentContinues reports whether a result says that its agent is still working.
func agentContinues(res *call.Result) bool {
	var details struct {
		Running bool `json:"running"`
	}
	return res != nil && json.Unmarshal(res.Details(), &details) == nil && details.Running
}

// setMeta returns a request's params with the member name of _meta set to value. An
// existing member is replaced. It returns an error if params or _meta is malformed.
func setMeta(params json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	members, err := jsonrpc.Members(params)
	if err != nil {
		return nil, err
	}
	meta := []byte(`{}`)
	for _, m := range members {
		if m.Name == "_meta" && string(m.Value) != "null" {
			meta = m.Value
		}
	}
	if meta, err = jsonrpc.SetMember(meta, name, value); err != nil {
		return nil, err
	}
	return jsonrpc.SetMember(params, "_meta", meta)
}
