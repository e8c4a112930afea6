package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// signInTimeout is the longest time of a sign-in after a client was last asked to open its link, and of
// a call that waits for it alone.
const signInTimeout = 5 * time.Minute

// signInTool is listed instead of a server's tools while they are unknown because the
// server needs a sign-in. No server has a tool of this name.
const signInTool = "toolroom_sign_in"

// signInSource is the source of a server that may need a sign-in. Until its tools have
// been listed once, it lists the sign-in tool together with the error.
type signInSource struct {
	*upstream.Server
	listed atomic.Bool

	// With perUser, requests have the credentials of the calling user. The tools are
	// listed with those of the host, or else with those of the first user.
	perUser    bool
	knownTools atomic.Pointer[[]json.RawMessage] // as a user's run listed them
	listing    atomic.Bool
	attempts   listAttempts
}

// isSameAs reports whether other is the source of the same server with the same kind of
// credentials.
func (s *signInSource) isSameAs(other catalog.Source) bool {
	o, ok := other.(*signInSource)
	return ok && s.Server == o.Server && s.perUser == o.perUser
}

// List returns the server's items of a kind. For tools that cannot be listed yet it
// returns the sign-in tool together with the error, or the tools that another user's run
// listed.
func (s *signInSource) List(ctx context.Context, kind call.ListKind) ([]json.RawMessage, error) {
	if s.perUser && kind == call.Resources {
		return nil, nil // the names of one user's data are not for others
	}
	items, err := s.Server.List(ctx, kind)
	if err != nil && s.perUser && kind == call.Tools {
		if tools, ok := s.ToolsOfCallers(); ok {
			s.knownTools.Store(&tools)
		}
		if known := s.knownTools.Load(); known != nil {
			items, err = *known, nil
		}
	}
	switch {
	case kind != call.Tools:
	case err == nil:
		s.listed.Store(true)
	case errors.Is(err, oauth.ErrSignIn) && !s.listed.Load():
		description := fmt.Sprintf("Signs in to server %s. Its tools are listed after that. Call this when the user wants something from %s.", s.Name(), s.Name())
		definition := jsonrpc.AppendString([]byte(`{"name":"`+signInTool+`","description":`), description)
		return []json.RawMessage{append(definition, `,"inputSchema":{"type":"object"}}`...)}, err
	}
	return items, err
}

// callSignInTool handles a call of the sign-in tool: it signs in to the server s, has its
// tools listed, and returns their number as text. It returns an error if the sign-in
// fails.
func (a *App) callSignInTool(ctx context.Context, req *call.Request, s *upstream.Server) (*call.Result, error) {
	before := a.signIns.count.Load()
	tools, err := s.ListFor(ctx, req.Caller)
	if err != nil {
		var again bool
		if again, err = a.signInThroughClient(ctx, req, before, err); again {
			tools, err = s.ListFor(ctx, req.Caller)
		}
	}
	if err != nil {
		return nil, &call.ExecutionError{Tool: req.Tool.Name, Phase: call.PhaseConnect, Message: "signing in to server " + s.Name(), Cause: err}
	}
	a.Catalog.Relist(ctx, s.Name())
	a.Catalog.Refresh(s.Name(), call.Resources, call.Templates, call.Prompts)
	text := fmt.Sprintf("Signed in to server %s. Its tools (%d) are listed now.", s.Name(), len(tools))
	raw := jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return &call.Result{Raw: append(raw, `}]}`...)}, nil
}

// opensLinks reports whether the caller's client opens links in a browser on this
// machine: it declares elicitation in URL mode, and is connected through a pipe or
// from this machine. The redirect address of a sign-in is a port of this machine.
func opensLinks(req *call.Request) bool {
	if req.Ask == nil || req.Caller.EntryPoint != "stdio" && req.Caller.Account != "http loopback" {
		return false
	}
	_, links := req.Caller.Elicitation()
	return links
}

// signInThroughClient sends the sign-in link of a server that refused a call to the call's
// client, and waits for the sign-in, which goes on if the call ends. again reports whether the call can be repeated; if
// not, err is the error for the call. The server refuses before it does anything, so
// nothing is done twice. before is the value of signIns.count before the server was asked:
// if another call has signed in to the server since then, no link is sent.
func (a *App) signInThroughClient(ctx context.Context, req *call.Request, before int64, refusal error) (again bool, err error) {
	if !errors.Is(refusal, oauth.ErrSignIn) {
		return false, refusal
	}
	p, ok := a.snapshot.Load().byName[req.Tool.Server]
	if !ok {
		return false, refusal
	}
	if req.Caller.User != "" && a.usesCallerCredentials(p.cfg) {
		return a.signInUser(ctx, req, p.cfg, refusal)
	}
	cfg, ok := p.cfg.SignIn(a.tokenStorage(), a.version)
	if !ok || !opensLinks(req) {
		return false, refusal
	}
	defer call.PauseClocks(ctx)() // a person gets more time than a server
	key := cfg.File()             // after a reload the server can have another address
	one, first := a.signIns.joinOrBegin(key, before)
	if one == nil {
		return true, nil
	}
	if first {
		one.scopes = oauth.MissingScopes(refusal)
		a.work.Go(func() { a.signIns.finish(key, one, a.runSignIn(one, cfg)) })
	}
	defer reportWaiting(req, cfg.Server)()
	// Questions of other clients prolong the sign-in, but not this call. The sign-in ends first if it
	// was not prolonged, and its error tells the reason.
	wait, stop := context.WithTimeout(ctx, signInTimeout+time.Second)
	defer stop()
	if !one.askClient(wait, req, cfg.Server) {
		return false, refusal
	}
	select {
	case <-one.done:
		if one.err != nil && !errors.Is(one.err, oauth.ErrLinkNotOpened) {
			return false, fmt.Errorf("%w (the sign-in by a link failed: %v)", refusal, one.err) //nolint:errorlint // the sign-in is still needed
		}
		return one.err == nil && ctx.Err() == nil, refusal
	case <-wait.Done():
		one.forgetQuestion(req)
		return false, refusal
	}
}

// runSignIn runs the OAuth authorization code flow: it offers the link to the calls that wait
// for the sign-in, and waits until the browser returns. It returns nil after success.
func (a *App) runSignIn(one *signIn, cfg oauth.Config) error {
	ctx, end := context.WithCancelCause(a.life)
	defer end(nil)
	limit := time.AfterFunc(signInTimeout, func() { end(errors.New("the sign-in was not completed in time")) })
	defer limit.Stop()
	account, err := oauth.Login(ctx, cfg, oauth.Prompt{Open: func(address string) error {
		one.offer(address, func() { end(oauth.ErrLinkNotOpened) }, func() { limit.Reset(signInTimeout) })
		return nil
	}})
	if err != nil && errors.Is(context.Cause(ctx), oauth.ErrLinkNotOpened) {
		return oauth.ErrLinkNotOpened
	}
	if err == nil {
		a.noticeStorage(cfg, account)
	}
	if err == nil && one.hasAskedLegacyClient() {
		a.Gateway.NotifyElicitationComplete("", append(jsonrpc.AppendString([]byte(`{"elicitationId":`), one.id), '}'))
	}
	return err
}

// noticeStorage tells the owner of the host where the tokens of a sign-in are, if they cannot be
// encrypted with a key in the keyring of the system.
func (a *App) noticeStorage(cfg oauth.Config, account oauth.SignInStatus) {
	if account.NoKeyring != nil {
		a.notifyOnce(fmt.Sprintf("the tokens of sign-ins are in %s, readable by you alone; the keyring of the system cannot be used: %v", filepath.Dir(cfg.File()), account.NoKeyring))
	}
}

// acceptedLink reports whether the client's answer to an elicitation is "accept": the user
// opened the link. err is the error of the elicitation.
func acceptedLink(raw json.RawMessage, err error) bool {
	var answer struct {
		Action string `json:"action"`
	}
	return err == nil && json.Unmarshal(raw, &answer) == nil && answer.Action == "accept"
}

// signInQuestion returns the params of the elicitation in URL mode (MCP specification,
// "Elicitation") that asks to open address. Version 2026-07-28 has no elicitationId.
func signInQuestion(req *call.Request, server string, scopes []string, id, address string) json.RawMessage {
	needs := "a sign-in"
	if len(scopes) > 0 {
		needs = fmt.Sprintf("a sign-in with more scopes (%s)", strings.Join(scopes, " "))
	}
	message := fmt.Sprintf("Server %s needs %s. The call of %s continues after it.", server, needs, req.Tool.Name)
	params := jsonrpc.AppendString([]byte(`{"mode":"url","message":`), message)
	params = jsonrpc.AppendString(append(params, `,"url":`...), address)
	if !req.Caller.Modern {
		params = jsonrpc.AppendString(append(params, `,"elicitationId":`...), id)
	}
	return append(params, '}')
}
