package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	kitwire "github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// maxQuestions bounds the open questions of one server.
const maxQuestions = 64

// isQuestion reports whether a client, not the host, has to answer a request.
func isQuestion(method string) bool {
	switch method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		return true
	}
	return false
}

// rootsAnswer returns the host's own answer to roots/list, nil if the host declares no
// roots capability. hasRoots is true if the host has roots; then no client need be asked.
func (c *conn) rootsAnswer() (answer json.RawMessage, hasRoots bool) {
	if c.cfg.Roots == nil {
		return nil, false
	}
	type root struct {
		URI string `json:"uri"`
	}
	roots := []root{}
	for _, uri := range c.cfg.Roots() {
		roots = append(roots, root{uri})
	}
	raw, err := jsonrpc.Marshal(map[string]any{"roots": roots})
	if err != nil { // strings can always be encoded
		return nil, false
	}
	return raw, len(roots) > 0
}

// forwardQuestion passes a request of a legacy server to the client of its call. That is the
// request of, on whose stream it was sent, or the one that servers made with mcpkit name
// (wire.MetaRequest). Otherwise the server may ask for any of its callers, also one whose call
// it has answered. Once it has callers with different users or profiles, or while calls of
// several clients are running, the question is refused, since one user must not answer for
// another.
//
// The host answers roots/list itself if it has roots or if the client does not answer.
func (c *conn) forwardQuestion(m jsonrpc.Message, of json.RawMessage) {
	var own json.RawMessage
	if m.Method == "roots/list" {
		var hasRoots bool
		if own, hasRoots = c.rootsAnswer(); hasRoots {
			c.reply(jsonrpc.AppendResult(nil, m.ID, own))
			c.recordRootsAnswer()
			return
		}
	}
	c.mu.Lock()
	p, fault := c.requestOfQuestion(m, of)
	if p == nil {
		c.mu.Unlock()
		if own != nil {
			c.reply(jsonrpc.AppendResult(nil, m.ID, own))
			return
		}
		if fault == errSeveralUsers {
			c.owners.Separate() // Server.instanceOf starts a run for each user
		}
		code := jsonrpc.CodeMethodNotFound
		if fault != "" {
			code = jsonrpc.CodeInvalidRequest
		} else {
			fault = "no client can answer " + m.Method
		}
		c.reply(jsonrpc.AppendError(nil, m.ID, code, fault))
		return
	}
	key := string(m.ID)
	_, twice := c.questions[key]
	if twice || len(c.questions) >= maxQuestions {
		c.mu.Unlock()
		c.reply(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInternal, "too many questions are open, or one with this id is"))
		return
	}
	if p.endQuestions == nil {
		p.questionsCtx, p.endQuestions = context.WithCancel(p.ctx)
	}
	ctx, cancel := context.WithCancel(p.questionsCtx)
	if c.questions == nil {
		c.questions = map[string]context.CancelFunc{}
	}
	c.questions[key] = cancel
	p.questions++
	// Counted before c.mu is unlocked, so that endRequest waits for it.
	p.openQuestions.Go(func() {
		params, err := c.addServerName(m.Method, withoutMetaRequest(m.Params))
		var raw json.RawMessage
		if err == nil {
			raw, err = p.request.ask(call.WithAskingServer(ctx, c.cfg.Name), m.Method, params)
		}
		c.mu.Lock()
		delete(c.questions, key)
		p.questions--
		c.mu.Unlock()
		cancel()
		if err != nil && own != nil {
			raw, err = own, nil
		}
		c.reply(questionAnswer(m, raw, err))
	})
	c.mu.Unlock()
}

// questionAnswer returns the message that answers the question m: a result, the
// client's error, or err.
func questionAnswer(m jsonrpc.Message, raw json.RawMessage, err error) []byte {
	var refused *call.MCPError
	switch {
	case err == nil:
		return jsonrpc.AppendResult(nil, m.ID, raw)
	case errors.As(err, &refused):
		return jsonrpc.AppendErrorObject(nil, m.ID, refused.Object)
	}
	return jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInternal, err.Error())
}

// requestOfQuestion returns the running request that a question belongs to; nil with the
// reason if none exists or it is ambiguous. The caller holds c.mu.
func (c *conn) requestOfQuestion(m jsonrpc.Message, of json.RawMessage) (p *pendingRequest, fault string) {
	id, known := metaRequest(m.Params)
	if !known && of != nil {
		var err error
		id, err = strconv.ParseUint(string(of), 10, 64)
		known = err == nil
	}
	if known {
		if p = c.pending[id]; p != nil && p.request != nil && p.request.ask != nil {
			return p, ""
		}
		return nil, "the request of the client has ended"
	}
	if c.owners.AreSeveral() {
		return nil, errSeveralUsers
	}
	return c.onlyRequest(func(r *request) bool { return r.ask != nil })
}

// errSeveralUsers is the answer to a question that could be for any of several users.
const errSeveralUsers = "this server works for several users, and the request does not say for which call it is, so it cannot be assigned; each user gets a process of this server now, so another call can succeed"

// metaRequest returns the id of the host's request in the params of a question, if a
// server made with mcpkit names it.
func metaRequest(params json.RawMessage) (id uint64, ok bool) {
	if !bytes.Contains(params, []byte(kitwire.MetaRequest)) {
		return 0, false
	}
	id, err := strconv.ParseUint(string(jsonrpc.MemberOf(jsonrpc.MemberOf(params, "_meta"), kitwire.MetaRequest)), 10, 64)
	return id, err == nil
}

// withoutMetaRequest removes wire.MetaRequest from params, since it means nothing to the
// client.
func withoutMetaRequest(params json.RawMessage) json.RawMessage {
	if _, ok := metaRequest(params); !ok {
		return params
	}
	other, err := jsonrpc.SetMember(params, "_meta", json.RawMessage(`{}`))
	if err != nil {
		return params
	}
	return other
}

// onlyRequest returns the running request that a message without a request id belongs to:
// the newest one of the only caller with requests for which takes returns true. It prefers
// a request whose client has no open question. If the request is ambiguous, p is nil and
// fault says so. The caller holds c.mu.
func (c *conn) onlyRequest(takes func(*request) bool) (p *pendingRequest, fault string) {
	for _, waiting := range []bool{false, true} {
		var newest uint64
		for id, candidate := range c.pending {
			if candidate.request == nil || !takes(candidate.request) || candidate.questions > 0 != waiting {
				continue
			}
			if p != nil && p.request.caller.ID != candidate.request.caller.ID {
				return nil, "requests of several clients are running, so this one cannot be assigned"
			}
			if id >= newest {
				newest, p = id, candidate
			}
		}
		if p != nil {
			break
		}
	}
	return p, ""
}

// cancelQuestion ends the question that the server's notifications/cancelled names.
func (c *conn) cancelQuestion(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	cancel := c.questions[string(p.RequestID)]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// forwardLog passes a log message to the request that it belongs to or, if that is
// ambiguous, to Config.onNotification. Once callers with different users or profiles have
// called the server, nobody gets it: it may belong to a request that was answered before.
func (c *conn) forwardLog(m jsonrpc.Message) {
	c.mu.Lock()
	p, _ := c.onlyRequest(func(r *request) bool { return r.notify != nil })
	mixed := c.owners.AreSeveral()
	if p != nil && !mixed {
		c.storeNotification(p, m.Method, m.Params)
	}
	c.mu.Unlock()
	if p == nil && !mixed {
		c.passNotification(m)
	}
}
