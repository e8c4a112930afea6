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
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/telemetry/prometheus"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The methods of the private socket, see package socket.
const (
	MethodHost      = "toolroom/host"      // {} → Running
	MethodServers   = "toolroom/servers"   // {} → []upstream.Status
	MethodReconnect = "toolroom/reconnect" // {"server":NAME} → upstream.Status
	MethodStats     = "toolroom/stats"     // {} → Counts
)

// Running is what a host says of itself.
type Running struct {
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Version string    `json:"version"`
	Door    string    `json:"door"`            // stdio, or the URL of serve
	Files   []string  `json:"files"`           // of the configuration
	Stale   string    `json:"stale,omitempty"` // why it keeps another than the files have now
}

// Counts is what a host has counted since it began, and how it is now.
type Counts struct {
	Running
	Tools   []stats.Row        `json:"tools"`
	Loads   []limit.Load       `json:"loads"`
	Process prometheus.Process `json:"process"`
}

// joinMeta is the member of _meta that tells a server that runs agents how
// they get at the host's tools, and whose call it is:
//
//	{"socket":PATH,"token":TOKEN,"lease":ID,"depth":N,"within":ID}
//
// lease names the agent that uses the token; depth is how many agents' calls
// the call is made within, and within names the agent that makes it, if any.
const joinMeta = "io.github.toolroom-mcp/host"

// private is the host's private socket. The zero value has none.
type private struct {
	tokens control.Tokens
	server *control.Server
	fault  error // why there is none, where there was to be one
}

func (p *private) close() {
	if p.server != nil {
		p.server.Close()
	}
}

// Listen opens the private socket, so that other programs of the user can ask
// what this host does, and agents can use its tools. door says how the host
// is otherwise reached. Close closes it.
func (a *App) Listen(door string) error {
	running := func() Running {
		r := Running{
			PID: os.Getpid(), Since: a.began.UTC().Truncate(time.Millisecond), Version: a.version,
			Door: door, Files: append([]string{}, a.Config.Files...),
		}
		if err := a.Stale(); err != nil {
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
				return Counts{running(), a.Stats(), a.busy(), prometheus.Here()}, nil
			},
		},
		Serve: func(ctx context.Context, as call.Caller, in io.Reader, out io.Writer) error {
			return a.Gateway.ServeAs(ctx, as, in, out, nil)
		},
	}, &a.private.tokens)
	if err != nil {
		a.private.fault = err
		return err
	}
	a.private.server = server
	return nil
}

// Statuses are how the servers are, the credentials of their command lines
// hidden.
func (a *App) Statuses(ctx context.Context) []upstream.Status {
	all := []upstream.Status{}
	for _, s := range a.Servers() {
		status := Status(s)
		status.Withheld = a.Withheld(ctx, s)
		all = append(all, status)
	}
	return all
}

// Status is how a server is, the credentials of its command line hidden.
func Status(s *upstream.Server) upstream.Status {
	status := s.Status()
	status.Command, status.URL = slices.Clone(status.Command), s.Concealed(status.URL)
	for i, arg := range status.Command {
		status.Command[i] = s.Concealed(arg)
	}
	status.Command = secret.Args(status.Command)
	status.SignIn = s.SignIn()
	return status
}

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

// join gives a call of a server that runs agents what they need to call back:
// a token that is good until done is called, or longer if the result says that
// the agent goes on. Without the socket that it was to have, an agent would work beside
// this host, and what holds for the caller would not hold for it.
func (a *App) join(ctx context.Context, req *call.Request) (with *call.Request, done func(*call.Result), err error) {
	nested := slices.Contains(a.way().cfg.Limit.Nested, req.Tool.Server)
	switch {
	case nested && a.private.fault != nil:
		return nil, nil, toolerr.New(toolerr.ExecutionError, "agents cannot reach this host's tools: %w", a.private.fault)
	case !nested || a.private.server == nil:
		return req, func(*call.Result) {}, nil
	}
	loan, err := a.private.tokens.Lend(ctx, req.Caller)
	if err != nil {
		return nil, nil, err
	}
	done = func(res *call.Result) { loan.GiveBack(goesOn(res) && starts(req)) }
	params, err := setMeta(req.Params, joinMeta, fmt.Appendf(nil, `{"socket":%s,"token":%s,"lease":%s,"depth":%d,"within":%s}`,
		jsonrpc.AppendString(nil, a.private.server.Name()), jsonrpc.AppendString(nil, loan.Token),
		jsonrpc.AppendString(nil, loan.ID), req.Caller.Depth, jsonrpc.AppendString(nil, req.Caller.Agent)))
	if err != nil { // they could say themselves what only this host says
		loan.GiveBack(false)
		return nil, nil, toolerr.New(toolerr.InvalidParams, "params of tools/call: %w", err)
	}
	lent := *req
	lent.Params = params
	return &lent, done, nil
}

// starts reports whether a call can be one that an agent was started for: who only waits
// for one has no use for a token.
func starts(req *call.Request) bool {
	raw, err := req.Arguments()
	var args struct {
		Prompt string `json:"prompt"`
	}
	return err == nil && (json.Unmarshal(raw, &args) != nil || strings.TrimSpace(args.Prompt) != "")
}

// goesOn reports whether a result says that its agent is still at work.
func goesOn(res *call.Result) bool {
	var details struct {
		Running bool `json:"running"`
	}
	return res != nil && json.Unmarshal(res.Details(), &details) == nil && details.Running
}

// setMeta returns params with a member of _meta set.
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
